#include "model/algorithms/closed_form.hpp"

#include <algorithm>
#include <string>

namespace hbmscope::closed {
namespace {

/// A second or two of counting.
constexpr std::int64_t kMaxQueryTiles = std::int64_t{1} << 29;

/// Totals of one head and one batch entry; 128 bits wide, so that only the final sums need a check.
struct HeadSums {
  WideInt row_passes = 0, live_rows = 0, key_passes = 0, tiles = 0, split_rows = 0;
  std::int64_t first_tile = 0,
               last_tile = -1;  ///< the key tiles that any query tile meets; a band leaves no gap between them
};

/// Without a mask every query tile meets every key tile, and the sums are products.
HeadSums sum_unmasked_head(std::int64_t rows, std::int64_t keys, std::int64_t block_q, std::int64_t block_kv,
                           std::int64_t tiles_per_split) {
  HeadSums sums;
  if (keys == 0) return sums;
  const WideInt query_tiles = (rows + block_q - 1) / block_q;
  const std::int64_t key_tiles = (keys + block_kv - 1) / block_kv;
  sums.row_passes = static_cast<WideInt>(rows) * key_tiles;
  sums.live_rows = rows;
  sums.key_passes = query_tiles * keys;
  sums.tiles = query_tiles * key_tiles;
  if (tiles_per_split > 0)
    sums.split_rows = static_cast<WideInt>(rows) * ((key_tiles + tiles_per_split - 1) / tiles_per_split);
  sums.last_tile = key_tiles - 1;
  return sums;
}

HeadSums sum_head(const AttentionShape& s, std::int64_t keys, std::int64_t block_q, std::int64_t block_kv,
                  std::int64_t pack, std::int64_t tiles_per_split) {
  const std::int64_t rows = s.seqlen_q * pack;
  if (!s.mask.window_left && !s.mask.window_right)
    return sum_unmasked_head(rows, keys, block_q, block_kv, tiles_per_split);
  HeadSums sums;
  const std::int64_t reach = s.seqlen_q + s.seqlen_kv;
  const std::int64_t left = s.mask.window_left ? std::min(*s.mask.window_left, reach) : reach;
  const std::int64_t right = s.mask.window_right ? std::min(*s.mask.window_right, reach) : reach;
  const std::int64_t offset = s.mask_offset();
  bool none_yet = true;
  for (std::int64_t r0 = 0; r0 < rows; r0 += block_q) {
    const std::int64_t r1 = std::min(r0 + block_q, rows) - 1;
    const std::int64_t lo = std::max<std::int64_t>(0, r0 / pack + offset - left);
    const std::int64_t hi = std::min(keys - 1, r1 / pack + offset + right);
    if (hi < lo) continue;
    const std::int64_t jlo = lo / block_kv;
    const std::int64_t jhi = hi / block_kv;
    const WideInt here = r1 - r0 + 1;
    const WideInt visited = jhi - jlo + 1;
    sums.row_passes += here * visited;
    sums.live_rows += here;
    sums.key_passes += std::min(keys, (jhi + 1) * block_kv) - jlo * block_kv;
    sums.tiles += visited;
    if (tiles_per_split > 0) sums.split_rows += here * (jhi / tiles_per_split - jlo / tiles_per_split + 1);
    if (none_yet) sums.first_tile = jlo;
    sums.last_tile = jhi;
    none_yet = false;
  }
  return sums;
}

}  // namespace

Count ceil_div(Count a, Count b) {
  return Count(a.value() / b.value() + (a.value() % b.value() != 0 ? 1 : 0));
}

TileSums tile_sums(const AttentionShape& shape, std::int64_t block_q, std::int64_t block_kv, std::int64_t pack,
                   std::int64_t tiles_per_split) {
  const std::int64_t query_tiles = narrow(static_cast<WideInt>(shape.seqlen_q) * pack).value() / block_q;
  if (query_tiles > kMaxQueryTiles) {
    throw Error(ErrorKind::usage, std::to_string(query_tiles) + " query tiles a head are more than are counted",
                "take larger query tiles, or a shorter sequence");
  }
  TileSums total;
  const auto add = [&](Count entries, std::int64_t keys) {
    const HeadSums head = sum_head(shape, keys, block_q, block_kv, pack, tiles_per_split);
    total.row_passes += entries * narrow(head.row_passes);
    total.live_rows += entries * narrow(head.live_rows);
    total.key_passes += entries * narrow(head.key_passes);
    total.tiles += entries * narrow(head.tiles);
    total.split_rows += entries * narrow(head.split_rows);
    if (head.last_tile >= 0) {
      total.touched_keys +=
          entries * Count(std::min(keys, (head.last_tile + 1) * block_kv) - head.first_tile * block_kv);
    }
  };
  if (shape.kv_lengths.empty()) {
    add(Count(shape.batch), shape.seqlen_kv);
  } else {
    for (const std::int64_t keys : shape.kv_lengths) add(Count(1), keys);
  }
  return total;
}

FlopCount count_flops(const AttentionShape& shape, Count per_pair, Count per_pair_padded, Count tiles,
                      std::int64_t block_q, std::int64_t block_kv) {
  const Count pairs = live_pairs(shape);
  const Count executed = tiles * Count(block_q) * Count(block_kv) * per_pair_padded;
  return {Flop((pairs * per_pair).value()), Flop(executed.value()), pairs};
}

FlopCount forward_flops(const AttentionShape& s, Count tiles, std::int64_t block_q, std::int64_t block_kv) {
  return count_flops(s, Count(2) * (Count(s.head_dim) + Count(s.head_dim_v)),
                     Count(2) * (padded(s.head_dim) + padded(s.head_dim_v)), tiles, block_q, block_kv);
}

FlopCount recomputing_backward_flops(const AttentionShape& s, Count tiles, std::int64_t block_q,
                                     std::int64_t block_kv) {
  const auto products = [](Count d, Count dv) { return Count(2) * (Count(3) * d + Count(2) * dv); };
  return count_flops(s, products(Count(s.head_dim), Count(s.head_dim_v)),
                     products(padded(s.head_dim), padded(s.head_dim_v)), tiles, block_q, block_kv);
}

Count padded(std::int64_t head_dim) {
  return Count((head_dim + 15) / 16 * 16);
}

}  // namespace hbmscope::closed
