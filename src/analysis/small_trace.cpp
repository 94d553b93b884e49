#include "analysis/small_trace.hpp"

#include <algorithm>

#include "model/memory.hpp"

namespace hbmscope {
namespace {

/// Keeps every event; there are a few hundred.
class Keeper : public TraceListener {
 public:
  explicit Keeper(std::vector<SmallSchedule>& to) : to_(to) {}
  void begin(const AlgorithmResult& /*algorithm*/) override { to_.emplace_back(); }
  void stage(std::string_view name) override { to_.back().stages.push_back(name); }
  void time(std::int64_t /*now*/) override {}
  void request(const PlayedRequest& r) override {
    SmallSchedule& s = to_.back();
    s.events.push_back(
        {true, s.stages.size() - 1, r.cta, r.step, r.index == 0, r.tile, r.bytes, r.store, r.through_hbm});
    add(s.sm_l2, r.tile.tensor, r.bytes, r.store);
    if (r.through_hbm) add(s.l2_hbm, r.tile.tensor, r.bytes, r.store);
  }
  void left_l2(const TileId& tile, Bytes bytes, bool written_back) override {
    SmallSchedule& s = to_.back();
    s.events.push_back({false, s.stages.size() - 1, 0, 0, false, tile, bytes, true, written_back});
    if (written_back) s.l2_hbm.write(tile.tensor, bytes);
  }

 private:
  static void add(Traffic& traffic, Tensor tensor, Bytes bytes, bool store) {
    store ? traffic.write(tensor, bytes) : traffic.read(tensor, bytes);
  }
  std::vector<SmallSchedule>& to_;
};

/// A window's edge, as much of the keys as before.
std::optional<std::int64_t> scaled(const std::optional<std::int64_t>& edge, std::int64_t small, std::int64_t full) {
  if (!edge) return edge;
  return static_cast<std::int64_t>(static_cast<WideInt>(*edge) * small / full);
}

AttentionShape scaled(const AttentionShape& full, std::int64_t block_q, std::int64_t block_kv) {
  AttentionShape s = full;
  s.batch = s.num_heads = s.num_kv_heads = 1;
  s.kv_lengths.clear();
  const bool square = full.seqlen_q == full.seqlen_kv;
  const std::int64_t larger = std::max(block_q, block_kv);
  s.seqlen_q = std::min(full.seqlen_q, kMostTilesASide * (square ? larger : block_q));
  s.seqlen_kv = std::min(full.seqlen_kv, kMostTilesASide * (square ? larger : block_kv));
  s.head_dim = std::min(full.head_dim, block_kv);
  s.head_dim_v = std::min(full.head_dim_v, block_kv);
  s.mask.window_left = scaled(full.mask.window_left, s.seqlen_kv, full.seqlen_kv);
  s.mask.window_right = scaled(full.mask.window_right, s.seqlen_kv, full.seqlen_kv);
  return s;
}

Bytes sum_of(std::initializer_list<Tensor> tensors, const AttentionShape& shape, const TilePlan& plan) {
  Bytes sum;
  for (const Tensor t : tensors) sum += tensor_bytes(t, shape, plan);
  return sum;
}

/// What the whole L2 holds of the whole shape.
L2Holds held(const RunResult& full, const TilePlan& flash) {
  if (full.l2_effective.value() == 0) return L2Holds::nothing;
  const AttentionShape& s = full.request.shape;
  const L2Config config = l2_config(full.request.gpu, full.l2_effective, false);
  const std::vector<KernelWalk> kernels = algorithm("flash_v2").walk(s, flash);
  if (kv_in_flight(kernels.front(), s, config, CtaOrder::ascending) > full.l2_effective) return L2Holds::half_of_kv;
  try {
    return sum_of({Tensor::S, Tensor::P}, s, flash) <= full.l2_effective ? L2Holds::everything : L2Holds::rows;
  } catch (const Error&) {  // beyond 64 bits, and so beyond any L2
    return L2Holds::rows;
  }
}

Bytes small_l2(L2Holds holds, const AttentionShape& s, const TilePlan& plan, Bytes whole) {
  const Bytes kv = sum_of({Tensor::K, Tensor::V}, s, plan), squares = sum_of({Tensor::S, Tensor::P}, s, plan);
  const Bytes rows = kv + sum_of({Tensor::Q, Tensor::O, Tensor::LSE, Tensor::l, Tensor::m}, s, plan);
  switch (holds) {
    case L2Holds::as_given:
      return whole;
    case L2Holds::nothing:
      return Bytes(0);
    case L2Holds::half_of_kv:
      return Bytes(kv.value() / 2);
    case L2Holds::rows:  // with a few tiles a side the rows may be larger than the squares
      return std::min(rows, Bytes(squares.value() / 2));
    case L2Holds::everything:
      return Count(4) * (rows + squares);  // of a backward pass too
  }
  return whole;
}

}  // namespace

SmallTrace small_trace(const RunRequest& request) {
  RunRequest formulas = request;
  formulas.engine = Engine::model;
  formulas.algorithms = {"flash_v2"};
  const RunResult full = run(formulas);
  SmallTrace out;
  out.full = full.request.shape;
  const TilePlan& flash = full.algorithms.front().plan;
  const auto gemm = request.plan.gemm_tile;
  // A GEMM tile that was asked for is the one to see, unless flash's were asked for too.
  const bool by_gemm = gemm && request.plan.block_q == 0 && request.plan.block_kv == 0;
  out.block_q = by_gemm ? (*gemm)[0] : flash.block_q;
  out.block_kv = by_gemm ? (*gemm)[1] : flash.block_kv;
  out.small = scaled(out.full, out.block_q, out.block_kv);

  RunRequest small = request;
  small.engine = Engine::model;
  small.shape = out.small;
  if (small.algorithms.empty())
    small.algorithms = default_algorithms(request.pass == "both" ? std::string_view("forward") : request.pass);
  small.plan.block_q = out.block_q;
  small.plan.block_kv = out.block_kv;
  small.plan.gemm_tile = {out.block_q, out.block_kv};
  small.plan.cluster = 1;
  small.plan.pack_gqa.reset();
  const std::int64_t key_tiles = (out.small.seqlen_kv - 1) / out.block_kv + 1;
  small.kv_splits = std::min(request.kv_splits.value_or(2), key_tiles);
  out.l2_holds = out.small == out.full ? L2Holds::as_given : held(full, flash);
  if (full.l2_effective.value() == 0) out.l2_holds = L2Holds::nothing;
  out.l2 = small_l2(out.l2_holds, out.small, small.plan, full.l2_effective);
  small.l2 = out.l2;
  small.sram = std::max(full.sram, Bytes(std::int64_t{1} << 40));  // the tiles fit already, or are to be seen anyway
  small.gpu.num_sms = 1;
  small.gpu.smem_per_sm_bytes = Bytes(1);  // room for one CTA, the least there is

  Keeper keeper(out.schedules);
  out.trace = trace(small, kDefaultMaxEvents, keeper);
  for (std::size_t i = 0; i < out.schedules.size(); ++i) out.schedules[i].result = out.trace.algorithms[i].result;
  return out;
}

}  // namespace hbmscope
