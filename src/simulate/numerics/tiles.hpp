#pragma once
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include "model/attention_shape.hpp"
#include "simulate/numerics/inputs.hpp"
#include "simulate/numerics/kernels.hpp"

namespace hbmscope::numerics {

/// Storage that begins at a cache line, as Kernels ask.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};
  CacheLineAllocator() = default;
  template <class U>
  explicit CacheLineAllocator(const CacheLineAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, kAlignment); }
  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) { return true; }
};
template <class T>
using Aligned = std::vector<T, CacheLineAllocator<T>>;

constexpr std::int64_t whole_panels(std::int64_t n) {
  return (n + kPanel - 1) / kPanel * kPanel;
}

/// Keys first <= c < last.
struct KeyRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  [[nodiscard]] bool empty() const { return first >= last; }
  [[nodiscard]] std::int64_t size() const { return empty() ? 0 : last - first; }
};
KeyRange intersection(KeyRange a, KeyRange b);

/// The keys that query row `row` of batch entry `batch` sees: a mask is a band and key padding a tail, so they are one
/// range.
KeyRange visible_keys(const AttentionShape& shape, std::int64_t batch, std::int64_t row);

/// K and V of one kv head, in panels: K^T as [keys / 16][head_dim][16], V as [head_dim_v / 16][keys][16], padded with
/// zeros to whole panels. Padded keys (kv_lengths) are not part of it.
struct KvHead {
  std::int64_t keys;
  std::int64_t head_dim;
  std::int64_t head_dim_v;
  Aligned<float> k;
  Aligned<float> v;
  [[nodiscard]] std::int64_t v_panel_stride() const { return keys * kPanel; }
};
KvHead load_kv_head(const AttentionShape& shape, const InputSource& inputs, std::int64_t batch, std::int64_t kv_head,
                    int threads);

/// Some query rows of one head; which rows share a tile changes no result.
struct QueryTile {
  std::int64_t rows;
  std::int64_t head_dim;
  std::vector<float> q;           ///< [rows, head_dim]
  std::vector<KeyRange> visible;  ///< by row
  KeyRange any_visible;           ///< from the first to the last key that any row sees
};
QueryTile load_queries(const AttentionShape& shape, const InputSource& inputs, std::int64_t batch, std::int64_t head,
                       std::span<const std::int64_t> rows);

/// S, then P, of a query tile against the keys of a KV tile. Its columns are whole panels of K, so a few may lie
/// outside `keys`.
struct ScoreTile {
  ScoreTile(std::int64_t tile_rows, KeyRange tile_keys);
  [[nodiscard]] float* row(std::int64_t r) { return values.data() + r * columns; }
  /// Column of key c within a row.
  [[nodiscard]] std::int64_t column(std::int64_t c) const { return c - first_column; }

  KeyRange keys;
  std::int64_t rows;
  std::int64_t first_column;  ///< the key of column 0
  std::int64_t columns;
  Aligned<float> values;  ///< [rows, columns]
};

}  // namespace hbmscope::numerics
