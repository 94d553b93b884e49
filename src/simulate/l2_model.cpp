#include "simulate/l2_model.hpp"

#include <algorithm>
#include <future>

#include "simulate/tile_trace.hpp"

namespace hbmscope {
namespace {

/// The CTA that runs in one of the GPU's places, and how far it has come.
struct Slot {
  std::int64_t cta = -1, pass = 0;
  const TileTrace* trace = nullptr;
  TileTrace own_trace;                          ///< where heads are not alike
  std::uint64_t head_key = 0, kv_head_key = 0;  ///< added to the trace's keys
  std::size_t steps = 0;                        ///< place in the trace
  std::int64_t repeat = 0;
  double debt = 0;  ///< time lost to HBM, in steps
  [[nodiscard]] bool busy() const { return cta >= 0; }
};

/// The CTA that starts as number `n`.
std::int64_t cta_at(std::int64_t n, const KernelWalk& kernel, CtaOrder order) {
  const std::int64_t tiles = kernel.tiles_per_head, heads = kernel.num_ctas / tiles;
  switch (order) {
    case CtaOrder::ascending:
      return n;
    case CtaOrder::longest_first:
      return n / tiles * tiles + (tiles - 1 - n % tiles);
    case CtaOrder::longest_first_interleaved:
      return n % heads * tiles + (tiles - 1 - n / heads);
  }
  return n;
}

class KernelRun {
 public:
  KernelRun(const KernelWalk& kernel, CtaOrder order, std::int64_t places, Pace pace, L2Cache& cache)
      : kernel_(kernel),
        order_(order),
        pace_(pace),
        cache_(cache),
        slots_(static_cast<std::size_t>(std::min(places, kernel.num_ctas))) {
    const std::int64_t traces = kernel.tiles_per_head * kernel.passes_per_cta;
    if (kernel.heads_per_kv > 0 && kernel.num_ctas > kernel.tiles_per_head && traces <= kMaxSharedTraces) {
      shared_.assign(static_cast<std::size_t>(traces), TileTrace(true));
    }
    tile_key({Tensor::Q, kernel.num_ctas / kernel.tiles_per_head, 0});  // refuses more heads than a key holds
  }

  void play(const std::function<void(std::int64_t)>& progress) {
    if (kernel_.passes_per_cta == 1 && kernel_.tiles_per_pass == 1) return play_one_step_ctas(progress);
    std::int64_t played = 0, reported = 0;
    while (true) {
      if (pace_ != Pace::lockstep || running_ == 0) start_ctas();
      if (running_ == 0) return;
      for (Slot& slot : slots_) {
        if (slot.busy()) played += take_step(slot);
      }
      if (progress && played - reported > (1 << 20)) {
        progress(played - reported);
        reported = played;
      }
    }
  }
  /// What the SMs asked for, at sm_l2.
  [[nodiscard]] Traffic requested() const {
    Traffic traffic(Boundary::sm_l2);
    for (const TensorInfo& tensor : kTensors) {
      traffic.read(tensor.tensor, Bytes(read_[static_cast<std::size_t>(tensor.tensor)]));
      traffic.write(tensor.tensor, Bytes(written_[static_cast<std::size_t>(tensor.tensor)]));
    }
    return traffic;
  }

 private:
  static constexpr std::int64_t kMaxSharedTraces = 1 << 16;

  /// CTAs of a single step cannot get ahead of each other: no need to take them down first.
  void play_one_step_ctas(const std::function<void(std::int64_t)>& progress) {
    struct Player : TileListener {
      explicit Player(KernelRun& kernel) : run(kernel) {}
      void load(const TileId& tile, Bytes bytes) override { play(tile, bytes, false, run.read_); }
      void store(const TileId& tile, Bytes bytes) override { play(tile, bytes, true, run.written_); }
      void play(const TileId& tile, Bytes bytes, bool store, std::array<std::int64_t, kTensorCount>& sum) {
        sum[static_cast<std::size_t>(tile.tensor)] += bytes.value();
        const std::uint64_t key = tile_key(tile);
        run.cache_.request(key, {key, bytes.value(), tile.tensor, store});
      }
      KernelRun& run;
    } player(*this);
    constexpr std::int64_t kReportEvery = 1 << 20;
    for (std::int64_t n = 0; n < kernel_.num_ctas; ++n) {
      kernel_.walk_pass(cta_at(n, kernel_, order_), 0, player);
      if (progress && (n + 1) % kReportEvery == 0) progress(kReportEvery);
    }
  }
  void start_ctas() {
    for (Slot& slot : slots_) {
      if (slot.busy() || started_ == kernel_.num_ctas) continue;
      slot.cta = cta_at(started_++, kernel_, order_);
      slot.pass = -1;
      slot.debt = 0;
      ++running_;
      next_pass(slot);
    }
  }
  /// Finds the next pass that asks for anything; frees the slot after the last.
  void next_pass(Slot& slot) {
    slot.steps = 0;
    slot.repeat = 0;
    while (++slot.pass < kernel_.passes_per_cta) {
      slot.trace = shared_.empty() ? own_trace(slot) : shared_trace(slot);
      if (slot.trace->empty()) continue;
      for (const TileTrace::Total& total : slot.trace->totals()) {
        read_[static_cast<std::size_t>(total.tensor)] += total.read;
        written_[static_cast<std::size_t>(total.tensor)] += total.write;
      }
      return;
    }
    slot.cta = -1;
    --running_;
  }
  const TileTrace* own_trace(Slot& slot) {
    slot.own_trace.clear();
    kernel_.walk_pass(slot.cta, slot.pass, slot.own_trace);
    slot.own_trace.finish();
    return &slot.own_trace;
  }
  /// The trace of the same tile and pass of head 0, moved to the slot's head.
  const TileTrace* shared_trace(Slot& slot) {
    const std::int64_t tile = slot.cta % kernel_.tiles_per_head, head = slot.cta / kernel_.tiles_per_head;
    slot.head_key = static_cast<std::uint64_t>(head) << kTileKeyHeadShift;
    slot.kv_head_key = static_cast<std::uint64_t>(head / kernel_.heads_per_kv) << kTileKeyHeadShift;
    TileTrace& trace = shared_[static_cast<std::size_t>(tile * kernel_.passes_per_cta + slot.pass)];
    if (trace.empty()) {
      kernel_.walk_pass(tile, slot.pass, trace);
      trace.finish();
    }
    return &trace;
  }
  std::int64_t take_step(Slot& slot) {
    if (slot.debt >= 1) {
      slot.debt -= 1;
      return 0;
    }
    bool hit = true;
    const TileTrace::Steps& steps = slot.trace->steps()[slot.steps];
    for (std::uint32_t i = steps.begin; i < steps.end; ++i) {
      const TileTrace::Request& r = slot.trace->request(i);
      const std::uint64_t moved =
          static_cast<std::uint64_t>(slot.repeat) * r.key_stride + (r.per_kv_head ? slot.kv_head_key : slot.head_key);
      hit = cache_.request(r.first.key + moved, r.first) && hit;
    }
    if (!hit && pace_ == Pace::coupled) slot.debt += kMissStall;
    if (++slot.repeat == steps.repeats) {
      slot.repeat = 0;
      if (++slot.steps == slot.trace->steps().size()) next_pass(slot);
    }
    return steps.end - steps.begin;
  }

  const KernelWalk& kernel_;
  CtaOrder order_;
  Pace pace_;
  L2Cache& cache_;
  std::vector<Slot> slots_;
  std::vector<TileTrace> shared_;  ///< by tile and pass, where heads are alike
  std::int64_t started_ = 0, running_ = 0;
  std::array<std::int64_t, kTensorCount> read_{}, written_{};
};

}  // namespace

L2Config l2_config(const GpuSpec& gpu, Bytes effective_capacity, bool warm) {
  return {effective_capacity, warm, gpu.num_sms, gpu.smem_per_sm_bytes.value(), gpu.registers_per_sm_bytes.value()};
}

std::int64_t resident_units(const KernelWalk& kernel, const L2Config& config) {
  std::int64_t per_sm = 8;
  if (kernel.smem_bytes > 0) per_sm = std::min(per_sm, config.smem_per_sm / kernel.smem_bytes);
  if (kernel.register_bytes > 0) per_sm = std::min(per_sm, config.registers_per_sm / kernel.register_bytes);
  return std::max<std::int64_t>(1, config.num_sms * std::max<std::int64_t>(1, per_sm) / kernel.cluster);
}

L2Result simulate_l2(const std::vector<KernelWalk>& kernels, CtaOrder order, const L2Config& config, Pace pace,
                     const std::function<void(std::int64_t)>& progress) {
  L2Cache cache(config.capacity);
  L2Result result;
  for (int run = config.warm ? 0 : 1; run < 2; ++run) {
    result = {};
    for (const KernelWalk& kernel : kernels) {
      KernelRun one(kernel, order, resident_units(kernel, config), pace, cache);
      one.play(progress);
      result.requested.push_back({kernel.stage, one.requested()});
      if (!config.warm && &kernel == &kernels.back()) cache.flush();
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

Bytes kv_in_flight(const KernelWalk& kernel, const AttentionShape& shape, const L2Config& config) {
  const std::int64_t units = std::min(resident_units(kernel, config), kernel.num_ctas);
  const std::int64_t heads = kernel.num_ctas / kernel.tiles_per_head;
  // A run of `units` CTAs in grid order begins anywhere in a head.
  const std::int64_t heads_in_flight = std::min(heads, units < 2 ? 1 : (units - 2) / kernel.tiles_per_head + 2);
  const std::int64_t heads_per_kv = std::max<std::int64_t>(1, heads / (shape.batch * shape.num_kv_heads));
  const std::int64_t kv_heads = std::min(
      shape.batch * shape.num_kv_heads, heads_per_kv == 1 ? heads_in_flight : (heads_in_flight - 2) / heads_per_kv + 2);
  return Count(std::max<std::int64_t>(1, kv_heads)) *
         (Count(shape.seqlen_kv) * Count(shape.head_dim + shape.head_dim_v) * Bytes(shape.element_bytes()));
}

L2Estimate estimate_l2(const std::vector<KernelWalk>& kernels, CtaOrder order, const L2Config& config,
                       const std::function<void(std::int64_t)>& progress) {
  const bool pace_matters =
      std::any_of(kernels.begin(), kernels.end(), [](const KernelWalk& k) { return k.shares_streams; });
  const bool all_paces = pace_matters && tiles_looked_at(kernels) <= kMaxTilesForAllPaces;
  std::array<std::future<L2Result>, kPaces.size()> runs;
  for (const Pace pace : kPaces) {
    if (!all_paces && pace != Pace::coupled) continue;
    runs[static_cast<std::size_t>(pace)] =
        std::async(std::launch::async, [&, pace] { return simulate_l2(kernels, order, config, pace, progress); });
  }
  L2Estimate estimate;
  for (const Pace pace : kPaces) {
    std::future<L2Result>& run = runs[static_cast<std::size_t>(pace)];
    if (!run.valid()) continue;
    L2Result result = run.get();
    estimate.paces.push_back({pace, result.traffic.total()});
    if (pace == Pace::coupled) estimate.central = std::move(result);
  }
  return estimate;
}

}  // namespace hbmscope
