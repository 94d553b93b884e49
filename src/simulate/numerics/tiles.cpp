#include "simulate/numerics/tiles.hpp"

#include <algorithm>

#include "simulate/numerics/parallel.hpp"

namespace hbmscope::numerics {

KeyRange intersection(KeyRange a, KeyRange b) {
  return {std::max(a.first, b.first), std::min(a.last, b.last)};
}

KeyRange visible_keys(const AttentionShape& shape, std::int64_t batch, std::int64_t row) {
  const std::int64_t diagonal = row + shape.mask_offset();
  KeyRange keys{0, shape.keys_of(batch)};
  // Limits beyond every sequence limit nothing; the clamp keeps the sums inside 64 bits.
  const auto within = [](std::int64_t limit) { return std::clamp(limit, -2 * kMaxSeqlen, 2 * kMaxSeqlen); };
  if (shape.mask.window_left) keys.first = std::max(keys.first, diagonal - within(*shape.mask.window_left));
  if (shape.mask.window_right) keys.last = std::min(keys.last, diagonal + within(*shape.mask.window_right) + 1);
  return keys;
}

KvHead load_kv_head(const AttentionShape& shape, const InputSource& inputs, std::int64_t batch, std::int64_t kv_head,
                    int threads) {
  KvHead kv{shape.keys_of(batch), shape.head_dim, shape.head_dim_v, {}, {}};
  kv.k.resize(static_cast<std::size_t>(whole_panels(kv.keys) * kv.head_dim));
  kv.v.resize(static_cast<std::size_t>(whole_panels(kv.head_dim_v) * kv.keys));
  constexpr std::int64_t kKeysAtOnce = 8 * kPanel;
  parallel_for((kv.keys + kKeysAtOnce - 1) / kKeysAtOnce, threads, [&](std::int64_t part) {
    std::vector<float> k_row(static_cast<std::size_t>(kv.head_dim));
    std::vector<float> v_row(static_cast<std::size_t>(kv.head_dim_v));
    const std::int64_t last = std::min(kv.keys, (part + 1) * kKeysAtOnce);
    for (std::int64_t key = part * kKeysAtOnce; key < last; ++key) {
      inputs.read_row(Tensor::K, batch, kv_head, key, k_row);
      float* k = kv.k.data() + key / kPanel * kv.head_dim * kPanel + key % kPanel;
      for (std::int64_t i = 0; i < kv.head_dim; ++i) k[i * kPanel] = k_row[static_cast<std::size_t>(i)];
      inputs.read_row(Tensor::V, batch, kv_head, key, v_row);
      float* v = kv.v.data() + key * kPanel;
      for (std::int64_t i = 0; i < kv.head_dim_v; ++i)
        v[i / kPanel * kv.v_panel_stride() + i % kPanel] = v_row[static_cast<std::size_t>(i)];
    }
  });
  return kv;
}

QueryTile load_queries(const AttentionShape& shape, const InputSource& inputs, std::int64_t batch, std::int64_t head,
                       std::span<const std::int64_t> rows) {
  QueryTile tile{static_cast<std::int64_t>(rows.size()), shape.head_dim, {}, {}, {}};
  const auto width = static_cast<std::size_t>(shape.head_dim);
  tile.q.resize(rows.size() * width);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    inputs.read_row(Tensor::Q, batch, head, rows[r], std::span(tile.q).subspan(r * width, width));
    const KeyRange visible = visible_keys(shape, batch, rows[r]);
    tile.visible.push_back(visible);
    if (visible.empty()) continue;
    tile.any_visible = tile.any_visible.empty() ? visible
                                                : KeyRange{std::min(tile.any_visible.first, visible.first),
                                                           std::max(tile.any_visible.last, visible.last)};
  }
  return tile;
}

ScoreTile::ScoreTile(std::int64_t tile_rows, KeyRange tile_keys)
    : keys(tile_keys),
      rows(tile_rows),
      first_column(tile_keys.first / kPanel * kPanel),
      columns(whole_panels(tile_keys.last) - first_column),
      values(static_cast<std::size_t>(tile_rows * columns)) {}

}  // namespace hbmscope::numerics
