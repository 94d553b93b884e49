#include "simulate/l2_model.hpp"

#include <algorithm>
#include <cmath>
#include <future>
#include <numeric>
#include <utility>

#include "simulate/kernel_run.hpp"

namespace hbmscope {
L2Config l2_config(const GpuSpec& gpu, Bytes effective_capacity, bool warm) {
  L2Config config{effective_capacity, warm, gpu.num_sms, gpu.smem_per_sm_bytes.value(),
                  gpu.registers_per_sm_bytes.value()};
  config.halves = config.hashed = gpu.num_sms > 1 && Count(2) * gpu.l2_effective_bytes == gpu.l2_bytes;
  return config;
}

L2Config l2_config(const GpuSpec& gpu, Bytes effective_capacity, bool warm, const std::vector<KernelWalk>& kernels,
                   const AttentionShape& shape, CtaOrder order) {
  L2Config config = l2_config(gpu, effective_capacity, warm);
  const auto shares = [](const KernelWalk& k) { return k.shares_streams; };
  const auto outgrows = [&](const KernelWalk& k) {
    return shares(k) && kv_in_flight(k, shape, config, order) > effective_capacity;
  };
  const auto without = [&](Status status, std::string reason) {
    config.sm_clocks.clear();
    config.why_no_clocks = status;
    config.no_clocks = std::move(reason);
    return config;
  };
  if (gpu.sm_clocks.empty())
    return without(Status::unsupported, "the clocks of this GPU's SMs are not known: gpu probe measures them");
  if (effective_capacity.value() == 0)
    return without(Status::unsupported, "without an L2 it does not matter when tiles are asked for");
  if (std::none_of(kernels.begin(), kernels.end(), shares))
    return without(Status::unsupported, "no CTAs of its kernels share a stream of K and V");
  if (std::none_of(kernels.begin(), kernels.end(), outgrows))
    return without(Status::unsupported, "K and V in flight fit the L2, so CTAs find them however far apart they are");
  config.sm_clocks = gpu.sm_clocks;
  if (tiles_looked_at(kernels) > kMaxTilesForAllPaces || cost_to_simulate(kernels, config) > kMaxCostSimulated ||
      memory_to_simulate(kernels, config) > kMaxMemorySimulated)
    return without(Status::skipped, "left out to save time: with them heads no longer repeat; fewer are simulated");
  return config;
}

namespace {

L2Build build_of(const L2Config& config) {
  return {config.capacity, config.halves, config.hashed};
}

}  // namespace

std::int64_t resident_units(const KernelWalk& kernel, const L2Config& config) {
  std::int64_t per_sm = 8;
  if (kernel.smem_bytes > 0) per_sm = std::min(per_sm, config.smem_per_sm / kernel.smem_bytes);
  if (kernel.register_bytes > 0) per_sm = std::min(per_sm, config.registers_per_sm / kernel.register_bytes);
  return std::max<std::int64_t>(1, config.num_sms * std::max<std::int64_t>(1, per_sm) / kernel.cluster);
}

L2Result simulate_l2(const std::vector<KernelWalk>& kernels, CtaOrder order, const L2Config& config, Pace pace,
                     const std::function<void(std::int64_t)>& progress, ScheduleListener* listener) {
  L2Cache cache(build_of(config));
  L2Result result;
  for (int run = config.warm ? 0 : 1; run < 2; ++run) {
    result = {};
    std::int64_t now = 0;
    ScheduleListener* const told = run == 1 ? listener : nullptr;
    cache.tell(told);
    for (const KernelWalk& kernel : kernels) {
      if (told != nullptr) told->stage(kernel.stage);
      KernelRun one(kernel, order, config, pace, cache, told, now);
      one.play(progress);
      now = one.end();
      result.requested.push_back({kernel.stage, one.requested()});
      result.requests_played += one.requests_played();
      if (!config.warm && &kernel == &kernels.back()) {
        if (told != nullptr) told->time(now);
        cache.flush();
      }
      result.stages.push_back({kernel.stage, cache.take_traffic()});
      result.traffic += result.stages.back().traffic;
    }
  }
  return result;
}

std::int64_t tiles_looked_at(const std::vector<KernelWalk>& kernels) {
  WideInt tiles = 0;
  for (const KernelWalk& k : kernels) tiles += static_cast<WideInt>(k.num_ctas) * k.passes_per_cta * k.tiles_per_pass;
  return narrow(tiles).value();
}

namespace {

/// Of a request on one slow core (2.5 GHz): CTAs that stream the same tiles find them in the processor's caches too.
/// A second half takes longer.
constexpr double kCostOfSharedRequest = 24, kCostOfRequest = 45, kCostOfHalves = 1.25;
/// Heads that are alike are seen to repeat after some periods, of which the first ones fill the L2.
constexpr std::int64_t kPeriodsToRepeat = 4;
/// And after so many requests for each tile that L2 holds: to fill it, and to look at it twice.
constexpr double kRequestsOfTileToRepeat = 24;
/// More tiles than these lie beyond the processor's caches, and each doubling of them costs a request so much more.
constexpr double kTilesInCaches = 1 << 18, kCostOfDoubling = 60;
/// Of a tile that L2 holds: its place in the lists, and in the two states that are compared.
constexpr double kBytesOfTile = 200;

/// Requests of some passes, by tensor, and how far they reach in each grid of tiles.
struct RequestCount : TileListener {
  void load(const TileId& tile, Bytes size) override { add(tile, size); }
  void store(const TileId& tile, Bytes size) override { add(tile, size); }
  void add(const TileId& tile, Bytes size) {
    OfTensor& of = tensors[static_cast<std::size_t>(tile.tensor)];
    of.requests += 1;
    of.bytes += size.as_double();
    of.rows = std::max(of.rows, static_cast<double>(tile.row + 1));
    of.columns = std::max(of.columns, static_cast<double>(tile.column + 1));
  }
  struct OfTensor {
    double requests = 0, bytes = 0, rows = 0, columns = 0;
  };
  std::array<OfTensor, kTensorCount> tensors;
};

/// What one kernel asks for, from its first, its middle and its last pass: under a mask some are long and some short.
struct Demand {
  double requests_of_pass;
  double tiles_held;  ///< in L2 at one time, at most: where tiles are small it holds many
};

Demand demand_of(const KernelWalk& kernel, const L2Config& config) {
  constexpr double kPasses = 3;
  RequestCount count;
  for (const std::int64_t third : {0, 1, 2}) {
    const auto at = [&](std::int64_t size) { return (size - 1) / 2 * third + (third == 2 ? (size - 1) % 2 : 0); };
    kernel.walk_pass(at(kernel.num_ctas), at(kernel.passes_per_cta), count);
  }
  const double capacity = config.capacity.as_double() * (config.halves ? 2 : 1);
  const double passes = static_cast<double>(kernel.num_ctas) * static_cast<double>(kernel.passes_per_cta);
  Demand demand{};
  const double heads = static_cast<double>(kernel.num_ctas / kernel.tiles_per_head);
  for (const RequestCount::OfTensor& of : count.tensors) {
    demand.requests_of_pass += of.requests / kPasses;
    if (of.requests == 0) continue;
    const double fit = capacity / (of.bytes / of.requests);
    const double there = std::min(of.rows * of.columns * heads, of.requests / kPasses * passes);
    demand.tiles_held = std::max(demand.tiles_held, std::min(fit, there));
  }
  return demand;
}

double heads_played(const KernelWalk& kernel, const L2Config& config, Pace pace, std::int64_t dealt_alike,
                    const Demand& demand) {
  const std::int64_t heads = kernel.num_ctas / kernel.tiles_per_head;
  if (kernel.heads_per_kv == 0 || pace == Pace::drifting) return static_cast<double>(heads);
  const std::int64_t places = std::min(resident_units(kernel, config), kernel.num_ctas);
  const bool one_step = kernel.passes_per_cta == 1 && kernel.tiles_per_pass == 1;
  const std::int64_t even = one_step ? 1 : places / std::gcd(places, kernel.tiles_per_head);
  const std::int64_t period = std::lcm(even, kernel.heads_per_kv * dealt_alike);
  const double of_head =
      static_cast<double>(kernel.tiles_per_head) * static_cast<double>(kernel.passes_per_cta) * demand.requests_of_pass;
  const double to_repeat = static_cast<double>(kPeriodsToRepeat * period) +
                           (of_head > 0 ? kRequestsOfTileToRepeat * demand.tiles_held / of_head : 0);
  return std::min(static_cast<double>(heads), to_repeat);
}

}  // namespace

std::vector<Pace> paces_to_simulate(const std::vector<KernelWalk>& kernels, const L2Config& config) {
  const bool pace_matters =
      std::any_of(kernels.begin(), kernels.end(), [](const KernelWalk& k) { return k.shares_streams; });
  if (!pace_matters || tiles_looked_at(kernels) > kMaxTilesForAllPaces) return {Pace::coupled};
  std::vector<Pace> paces{Pace::lockstep, Pace::coupled, Pace::apart};
  if (!config.sm_clocks.empty()) paces.push_back(Pace::drifting);
  return paces;
}

std::int64_t cost_to_simulate(const std::vector<KernelWalk>& kernels, const L2Config& config) {
  const std::int64_t dealt_alike = build_of(config).heads_dealt_alike();
  const std::vector<Pace> paces = paces_to_simulate(kernels, config);
  double cost = 0;
  for (const KernelWalk& kernel : kernels) {
    const Demand demand = demand_of(kernel, config);
    const double of_request = (kernel.shares_streams ? kCostOfSharedRequest : kCostOfRequest) +
                              kCostOfDoubling * std::max(0.0, std::log2(demand.tiles_held / kTilesInCaches));
    const double of_head = static_cast<double>(kernel.tiles_per_head) * static_cast<double>(kernel.passes_per_cta) *
                           demand.requests_of_pass * of_request;
    for (const Pace pace : paces) cost += of_head * heads_played(kernel, config, pace, dealt_alike, demand);
  }
  return static_cast<std::int64_t>(std::min(cost * (config.warm ? 2 : 1) * (config.halves ? kCostOfHalves : 1), 1e18));
}

std::int64_t memory_to_simulate(const std::vector<KernelWalk>& kernels, const L2Config& config) {
  double tiles = 0;
  for (const KernelWalk& kernel : kernels) tiles = std::max(tiles, demand_of(kernel, config).tiles_held);
  const auto paces = static_cast<double>(paces_to_simulate(kernels, config).size());
  return static_cast<std::int64_t>(std::min(tiles * paces * kBytesOfTile, 1e18));
}

Bytes kv_in_flight(const KernelWalk& kernel, const AttentionShape& shape, const L2Config& config, CtaOrder order) {
  const std::int64_t units = std::min(resident_units(kernel, config), kernel.num_ctas);
  const std::int64_t heads = kernel.num_ctas / kernel.tiles_per_head;
  // A run of `units` CTAs in grid order begins anywhere in a head.
  const bool side_by_side = order == CtaOrder::longest_first_interleaved;
  const std::int64_t heads_in_flight = std::min(heads, side_by_side ? units
                                                       : units < 2  ? 1
                                                                    : (units - 2) / kernel.tiles_per_head + 2);
  const std::int64_t heads_per_kv = std::max<std::int64_t>(1, heads / (shape.batch * shape.num_kv_heads));
  const std::int64_t kv_heads = std::min(
      shape.batch * shape.num_kv_heads, heads_per_kv == 1 ? heads_in_flight : (heads_in_flight - 2) / heads_per_kv + 2);
  return Count(std::max<std::int64_t>(1, kv_heads)) *
         (Count(shape.seqlen_kv) * Count(shape.head_dim + shape.head_dim_v) * Bytes(shape.element_bytes()));
}

L2Estimate estimate_l2(const std::vector<KernelWalk>& kernels, CtaOrder order, const L2Config& config,
                       const std::function<void(std::int64_t)>& progress) {
  const std::vector<Pace> paces = paces_to_simulate(kernels, config);
  std::vector<std::future<L2Result>> runs;
  for (const Pace pace : paces) {
    runs.push_back(
        std::async(std::launch::async, [&, pace] { return simulate_l2(kernels, order, config, pace, progress); }));
  }
  L2Estimate estimate;
  for (std::size_t i = 0; i < paces.size(); ++i) {
    L2Result result = runs[i].get();
    estimate.paces.push_back({paces[i], result.traffic.total()});
    if (paces[i] == Pace::coupled) estimate.central = std::move(result);
  }
  return estimate;
}

}  // namespace hbmscope
