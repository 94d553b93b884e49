#include <algorithm>
#include <cmath>

#include "simulate/numerics/engines.hpp"

namespace hbmscope::numerics {

/// Flash-Decoding: each split of the keys leaves a normalised fp32 output and its LSE; a second kernel combines them.
void split_kv(const Problem& problem, TileOutput& out) {
  const auto& [shape, plan, kernels, kv, q, scale] = problem;
  const std::int64_t splits = std::max<std::int64_t>(plan.num_kv_splits, 1);
  const std::int64_t kv_tiles = (shape.seqlen_kv + block_kv(plan) - 1) / block_kv(plan);
  const std::int64_t keys_per_split = (kv_tiles + splits - 1) / splits * block_kv(plan);

  SoftmaxState combined(q.rows, shape.head_dim_v);
  for (std::int64_t first = 0; first < kv.keys; first += keys_per_split) {
    SoftmaxState partial(q.rows, shape.head_dim_v);
    out.nonfinite_scores += online_softmax(problem, {first, std::min(first + keys_per_split, kv.keys)}, partial);

    // Combining in the order of the splits is an online softmax whose scores are the splits' LSE and whose values are
    // their outputs.
    for (std::int64_t r = 0; r < q.rows; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const float lse = normalise_row(kernels, partial, r);
      const float m = std::max(combined.m[i], lse);
      const float rescale = std::exp(combined.m[i] - shift_of(m));
      const float weight = std::exp(lse - shift_of(m));
      combined.l[i] = rescale * combined.l[i] + weight;
      combined.m[i] = m;
      float* o = combined.row(r);
      const float* partial_o = partial.row(r);
      for (std::int64_t c = 0; c < combined.columns; ++c) o[c] = rescale * o[c] + weight * partial_o[c];
    }
  }
  for (std::int64_t r = 0; r < q.rows; ++r) {
    out.lse[r] = normalise_row(kernels, combined, r);
    store_output_row(kernels, combined, r, shape.head_dim_v, shape.dtype, out);
  }
}

}  // namespace hbmscope::numerics
