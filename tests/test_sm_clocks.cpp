// SMs with clocks of their own: where the simulation takes them, and what they do to CTAs and bytes.
#include <doctest/doctest.h>

#include <array>

#include "l2_shapes.hpp"
#include "scenario/gpu_file.hpp"
#include "simulate/l2_model.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

TEST_CASE("SMs of one clock are simulated as if none were known, and clocks are taken only where CTAs can lose touch") {
  GpuSpec gpu = embedded_gpu("H200");
  gpu.sm_clocks.assign(132, 1.5e9);
  const AttentionShape shape = heads_of(2, 65536), fitting = heads_of(2, 8192);
  const auto kernels = kernels_of("flash_v2", shape, tiles_of(128, 128));
  const L2Config one_clock = l2_config(gpu, gpu.l2_effective_bytes, false, kernels, shape, CtaOrder::ascending);
  CHECK(one_clock.sm_clocks == gpu.sm_clocks);
  const auto bytes = [&](const L2Config& config, Pace pace) {
    return simulate_l2(kernels, CtaOrder::ascending, config, pace).traffic.total();
  };
  L2Config unknown = one_clock;
  unknown.sm_clocks.clear();
  for (const Pace pace : kPaces) CHECK(bytes(one_clock, pace) == bytes(unknown, pace));

  gpu.sm_clocks[7] = 1.6e9;
  const L2Config two_clocks = l2_config(gpu, gpu.l2_effective_bytes, false, kernels, shape, CtaOrder::ascending);
  for (const Pace pace : {Pace::lockstep, Pace::coupled, Pace::apart})
    CHECK(bytes(two_clocks, pace) == bytes(unknown, pace));
  CHECK(paces_to_simulate(kernels, two_clocks).size() == 4);
  CHECK(paces_to_simulate(kernels, unknown).size() == 3);

  // K and V of a head fit; no L2; an algorithm whose CTAs share no stream; none known.
  const auto clocks = [&](const AttentionShape& s, std::string_view algorithm, Bytes l2,
                          CtaOrder order = CtaOrder::ascending) {
    return l2_config(gpu, l2, false, kernels_of(algorithm, s, tiles_of(128, 128)), s, order).sm_clocks.size();
  };
  CHECK(clocks(shape, "flash_v2", gpu.l2_effective_bytes) == 132);
  CHECK(clocks(fitting, "flash_v2", gpu.l2_effective_bytes) == 0);
  CHECK(clocks(fitting, "flash_v2", Bytes(4 * kMiB)) == 132);
  // Of heads side by side all are in flight.
  const AttentionShape many = heads_of(16, 8192);
  CHECK(clocks(many, "flash_v2", gpu.l2_effective_bytes) == 0);
  CHECK(clocks(many, "flash_v2", gpu.l2_effective_bytes, CtaOrder::longest_first_interleaved) == 132);
  CHECK(clocks(shape, "flash_v2", Bytes(0)) == 0);
  CHECK(clocks(shape, "naive", gpu.l2_effective_bytes) == 0);
  gpu.sm_clocks.clear();
  CHECK(clocks(shape, "flash_v2", gpu.l2_effective_bytes) == 0);
}

TEST_CASE("an SM whose clock is a tenth slower takes a tenth longer for each of its CTAs") {
  struct Last : ScheduleListener {
    void stage(std::string_view) override {}
    void time(std::int64_t now) override { now_ = now; }
    void request(const PlayedRequest& r) override { last[static_cast<std::size_t>(r.sm)] = now_; }
    void left_l2(const TileId&, Bytes, bool) override {}
    std::array<std::int64_t, 2> last{};
    std::int64_t now_ = 0;
  } listener;
  const AttentionShape shape = heads_of(2, 128);
  AttentionShape keys = shape;
  keys.seqlen_kv = 128 * 2000;
  const auto kernels = kernels_of("flash_v2", keys, tiles_of(128, 128));
  L2Config config = h200(kInfinite);
  config.num_sms = 2;
  config.sm_clocks = {1.65e9, 1.5e9};
  simulate_l2(kernels, CtaOrder::ascending, config, Pace::drifting, {}, &listener);
  const double longer = static_cast<double>(listener.last[1]) / static_cast<double>(listener.last[0]);
  CHECK(longer == doctest::Approx(1.1).epsilon(0.01));
}

TEST_CASE("clocks that come together after a share of the CTAs part those no further, the sooner the less") {
  const auto read = [](double share) {
    L2Config config = h200(Bytes(8 * kMiB));
    for (int sm = 0; sm < 132; ++sm) config.sm_clocks.push_back(1.6e9 / (1 + 0.06 * (sm / 2 % 8) / 7));
    config.clocks_apart = share;
    const auto kernels = kernels_of("flash_v3", heads_of(6, 32768), tiles_of(128, 128));
    return simulate_l2(kernels, CtaOrder::ascending, config, Pace::drifting).traffic.sum().read;
  };
  // With none before its clocks come together, as at one clock.
  CHECK(read(-1) == simulate_l2(kernels_of("flash_v3", heads_of(6, 32768), tiles_of(128, 128)), CtaOrder::ascending,
                                h200(Bytes(8 * kMiB)), Pace::coupled)
                        .traffic.sum()
                        .read);
  CHECK(read(-1) < read(0.5));
  CHECK(read(0.5) < read(0.75));
  CHECK(read(0.75) < read(1));
}

TEST_CASE("by clocks a few per cent apart the CTAs of long heads drift apart, further with every head") {
  // Clocks in groups of SMs, as on the GPUs that were looked at; K and V of a head are twice what L2 holds for all.
  const auto excess = [&](std::int64_t heads, double spread) {
    L2Config config = h200(Bytes(8 * kMiB));
    for (int sm = 0; sm < 132; ++sm) config.sm_clocks.push_back(1.6e9 / (1 + spread * (sm / 2 % 8) / 7));
    const auto kernels = kernels_of("flash_v3", heads_of(heads, 32768), tiles_of(128, 128));
    L2Config alike = config;
    alike.sm_clocks.clear();
    const auto read = [&](const L2Config& c) {
      return simulate_l2(kernels, CtaOrder::ascending, c, Pace::drifting).traffic.sum().read.as_double();
    };
    return read(config) / read(alike);
  };
  CHECK(excess(1, 0.03) == doctest::Approx(1).epsilon(0.02));  // two passes over the keys
  CHECK(excess(16, 0.03) > 1.5);
  CHECK(excess(16, 0.03) > excess(8, 0.03));
  CHECK(excess(16, 0.03) > excess(16, 0.01));
}
