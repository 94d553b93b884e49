#include <algorithm>
#include <cmath>
#include <limits>

#include "simulate/numerics/engines.hpp"

namespace hbmscope::numerics {

std::int64_t online_softmax(const Problem& problem, KeyRange keys, SoftmaxState& state) {
  const auto& [shape, plan, kernels, kv, q, scale] = problem;
  std::int64_t nonfinite_scores = 0;
  for (std::int64_t first = keys.first; first < keys.last; first += block_kv(plan)) {
    ScoreTile s(q.rows, {first, std::min(first + block_kv(plan), keys.last)});
    if (intersection(q.any_visible, s.keys).empty()) continue;
    compute_scores(kernels, q, kv, s);
    nonfinite_scores += scale_and_mask(kernels, q, scale, s);

    for (std::int64_t r = 0; r < q.rows; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const float m = std::max(state.m[i], kernels.row_max(s.row(r), s.columns));
      const float rescale = std::exp(state.m[i] - shift_of(m));
      state.l[i] = rescale * state.l[i] + kernels.exp_row(s.row(r), s.columns, shift_of(m));
      state.m[i] = m;
      if (rescale != 1.0F) kernels.scale_row(state.row(r), state.columns, rescale);
    }
    accumulate_values(kernels, q, kv, shape.dtype, s, state);
  }
  return nonfinite_scores;
}

float normalise_row(const Kernels& kernels, SoftmaxState& state, std::int64_t r) {
  const auto i = static_cast<std::size_t>(r);
  if (state.l[i] == 0.0F) return -std::numeric_limits<float>::infinity();
  kernels.scale_row(state.row(r), state.columns, 1.0F / state.l[i]);
  return state.m[i] + std::log(state.l[i]);
}

/// One pass over the keys; O stays unnormalised in fp32 on chip and is written once.
void flash_v2(const Problem& problem, TileOutput& out) {
  const auto& [shape, plan, kernels, kv, q, scale] = problem;
  SoftmaxState state(q.rows, shape.head_dim_v);
  out.nonfinite_scores += online_softmax(problem, {0, kv.keys}, state);
  for (std::int64_t r = 0; r < q.rows; ++r) {
    out.lse[r] = normalise_row(kernels, state, r);
    store_output_row(kernels, state, r, shape.head_dim_v, shape.dtype, out);
  }
}

}  // namespace hbmscope::numerics
