#include <cmath>
#include <limits>

#include "core/rounding.hpp"
#include "simulate/numerics/engines.hpp"

namespace hbmscope::numerics {

/// Three kernels with S and P in memory between them, both rounded to what memory holds.
void naive(const Problem& problem, TileOutput& out) {
  const auto& [shape, plan, kernels, kv, q, scale] = problem;
  ScoreTile s(q.rows, {0, kv.keys});
  SoftmaxState state(q.rows, shape.head_dim_v);

  compute_scores(kernels, q, kv, s);
  round_to(s.values, plan.fp32_scores ? Dtype::fp32 : shape.dtype);

  out.nonfinite_scores += scale_and_mask(kernels, q, scale, s);
  for (std::int64_t r = 0; r < q.rows; ++r) {
    const bool masked = q.visible[static_cast<std::size_t>(r)].empty();
    // Only a row without keys is spared -inf - -inf: where S overflowed, softmax has no value and NaN must show.
    const float m = masked ? 0.0F : kernels.row_max(s.row(r), s.columns);
    const float l = kernels.exp_row(s.row(r), s.columns, m);
    if (!masked) kernels.scale_row(s.row(r), s.columns, 1.0F / l);
    out.lse[r] = masked ? -std::numeric_limits<float>::infinity() : m + std::log(l);
  }

  accumulate_values(kernels, q, kv, shape.dtype, s, state);
  for (std::int64_t r = 0; r < q.rows; ++r) store_output_row(kernels, state, r, shape.head_dim_v, shape.dtype, out);
}

}  // namespace hbmscope::numerics
