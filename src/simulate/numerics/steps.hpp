#pragma once
#include <cstdint>
#include <vector>

#include "core/dtype.hpp"
#include "simulate/numerics/tiles.hpp"

namespace hbmscope::numerics {

/// What an engine writes for a query tile.
struct TileOutput {
  float* o;                            ///< [rows, head_dim_v]
  float* lse;                          ///< [rows], natural logarithm
  std::int64_t nonfinite_scores = 0;   ///< infinities and NaN among the visible elements of S, as stored
  std::int64_t nonfinite_outputs = 0;  ///< the same among the elements of O
};

/// The running softmax of a query tile: row maximum m, row sum l, and O in fp32.
struct SoftmaxState {
  SoftmaxState(std::int64_t tile_rows, std::int64_t head_dim_v);
  [[nodiscard]] float* row(std::int64_t r) { return o.data() + r * columns; }
  std::int64_t columns;  ///< head_dim_v, padded to whole panels
  std::vector<float> m;  ///< -inf at first
  std::vector<float> l;  ///< 0 at first
  Aligned<float> o;      ///< [rows, columns], 0 at first
};

/// S = Q K^T, accumulated in fp32.
void compute_scores(const Kernels& kernels, const QueryTile& q, const KvHead& kv, ScoreTile& s);

/// S <- scale * S where the row sees the key, -inf elsewhere. Returns how many visible scores were not finite.
std::int64_t scale_and_mask(const Kernels& kernels, const QueryTile& q, float scale, ScoreTile& s);

/// O += P V over the keys that any row of the tile sees. P is first rounded to `dtype`, as the operands of tensor cores
/// are.
void accumulate_values(const Kernels& kernels, const QueryTile& q, const KvHead& kv, Dtype dtype, ScoreTile& p,
                       SoftmaxState& state);

/// Rounds row r of O to `dtype`, writes it, and counts what is not finite.
void store_output_row(const Kernels& kernels, const SoftmaxState& state, std::int64_t r, std::int64_t head_dim_v,
                      Dtype dtype, TileOutput& out);

/// What to subtract from a row's scores: its maximum, or 0 while it has seen no key, so that -inf - -inf never arises.
float shift_of(float row_maximum);

}  // namespace hbmscope::numerics
