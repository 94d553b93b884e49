#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/rounding.hpp"
#include "simulate/numerics/engines.hpp"

namespace hbmscope::numerics {

/// Algorithm 1 of FlashAttention: KV tiles outermost, and O, l and m of every query tile kept in memory between the
/// passes. Query tiles never meet, so one of them is followed here through all passes. O is normalised in each, and
/// rounded to what memory holds: the output's dtype in the paper, fp32 (Otmp) in the kernels as first released.
void flash_v1(const Problem& problem, TileOutput& out) {
  const auto& [shape, plan, kernels, kv, q, scale] = problem;
  const Dtype stored = plan.variant == FlashV1Variant::paper ? shape.dtype : Dtype::fp32;
  SoftmaxState memory(q.rows, shape.head_dim_v);

  for (std::int64_t first = 0; first < kv.keys; first += block_kv(plan)) {
    ScoreTile s(q.rows, {first, std::min(first + block_kv(plan), kv.keys)});
    if (intersection(q.any_visible, s.keys).empty()) continue;
    compute_scores(kernels, q, kv, s);
    out.nonfinite_scores += scale_and_mask(kernels, q, scale, s);

    SoftmaxState tile(q.rows, shape.head_dim_v);
    for (std::int64_t r = 0; r < q.rows; ++r) {
      const auto i = static_cast<std::size_t>(r);
      tile.m[i] = kernels.row_max(s.row(r), s.columns);
      tile.l[i] = kernels.exp_row(s.row(r), s.columns, shift_of(tile.m[i]));
    }
    accumulate_values(kernels, q, kv, shape.dtype, s, tile);

    for (std::int64_t r = 0; r < q.rows; ++r) {
      const auto i = static_cast<std::size_t>(r);
      if (intersection(q.visible[i], s.keys).empty()) continue;  // nothing new for this row
      const float m = std::max(memory.m[i], tile.m[i]);
      const float old_weight = std::exp(memory.m[i] - shift_of(m)) * memory.l[i];
      const float new_weight = std::exp(tile.m[i] - shift_of(m));
      const float l = old_weight + new_weight * tile.l[i];
      const std::span<float> o(memory.row(r), static_cast<std::size_t>(memory.columns));
      const float* tile_o = tile.row(r);
      for (std::size_t c = 0; c < o.size(); ++c) o[c] = (old_weight * o[c] + new_weight * tile_o[c]) / l;
      round_to(o, stored);
      memory.m[i] = m;
      memory.l[i] = l;
    }
  }

  for (std::int64_t r = 0; r < q.rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    out.lse[r] = q.visible[i].empty() ? -std::numeric_limits<float>::infinity() : memory.m[i] + std::log(memory.l[i]);
    store_output_row(kernels, memory, r, shape.head_dim_v, shape.dtype, out);
  }
}

}  // namespace hbmscope::numerics
