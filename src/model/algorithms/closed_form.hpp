#pragma once
#include <cstdint>

#include "model/algorithm.hpp"

namespace hbmscope::closed {

/// The shape's sizes as checked numbers, under the letters of the papers.
struct Sizes {
  explicit Sizes(const AttentionShape& s)
      : B(s.batch),
        H(s.num_heads),
        Hkv(s.num_kv_heads),
        Nq(s.seqlen_q),
        Nk(s.seqlen_kv),
        d(s.head_dim),
        dv(s.head_dim_v),
        e(s.element_bytes()) {}
  Count B, H, Hkv, Nq, Nk, d, dv;
  Bytes e;                       ///< one element of Q, K, V, O and the gradients
  Bytes stat{kStatisticBytes};   ///< one fp32 statistic
  Bytes acc{kAccumulatorBytes};  ///< one fp32 accumulator
};

/// ceil(a / b) for a >= 0, b >= 1.
Count ceil_div(Count a, Count b);

/// What a tiling of the (query, key) plane visits. All are sums over the batch for one head. With tile i holding rows_i
/// query rows and seeing the key tiles jlo_i .. jhi_i (J_i of them, none if the mask leaves the tile dead):
struct TileSums {
  Count row_passes;    ///< sum rows_i J_i: query rows, once for each key tile they meet
  Count live_rows;     ///< sum rows_i over live tiles
  Count key_passes;    ///< key rows loaded, once for each query tile that meets them
  Count touched_keys;  ///< key rows of tiles that any query tile meets
  Count tiles;         ///< sum J_i
  Count split_rows;    ///< sum rows_i (number of key splits that tile i meets)
};

/// Query tiles of `block_q` rows, each row one query of `pack` stacked heads (1: not packed); key tiles of `block_kv`
/// rows; key splits of `tiles_per_split` key tiles (0: no splits). Costs O(number of query tiles)
/// under a mask.
TileSums tile_sums(const AttentionShape& shape, std::int64_t block_q, std::int64_t block_kv, std::int64_t pack = 1,
                   std::int64_t tiles_per_split = 0);

/// Matmul and exp counts for `per_pair` FLOPs a live pair, and `tiles` visited tiles of block_q x block_kv at
/// `per_pair_padded`.
FlopCount count_flops(const AttentionShape& shape, Count per_pair, Count per_pair_padded, Count tiles,
                      std::int64_t block_q, std::int64_t block_kv);

/// A forward pass: S over d and O over d_v on each of `tiles`.
FlopCount forward_flops(const AttentionShape& shape, Count tiles, std::int64_t block_q, std::int64_t block_kv);
/// A backward pass that computes S again: S, dQ and dK over d, dP and dV over d_v.
FlopCount recomputing_backward_flops(const AttentionShape& shape, Count tiles, std::int64_t block_q,
                                     std::int64_t block_kv);

/// Head dim as the tensor cores see it: padded to a multiple of 16.
Count padded(std::int64_t head_dim);

}  // namespace hbmscope::closed
