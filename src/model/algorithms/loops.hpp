#pragma once
#include <algorithm>
#include <cstdint>

#include "model/algorithm.hpp"

/// What the loop nests of walk() are written with. The closed forms do not use any of it.
namespace hbmscope::loops {

/// Rows [first, last] of tile `index`.
struct Rows {
  std::int64_t index, first, last;
  [[nodiscard]] std::int64_t count() const { return last - first + 1; }
};

/// `length` rows cut into tiles of `block`; the last one may be ragged.
class Tiles {
 public:
  Tiles(std::int64_t length, std::int64_t block) : length_(length), block_(block) {}
  [[nodiscard]] std::int64_t count() const { return length_ / block_ + (length_ % block_ > 0); }
  [[nodiscard]] Rows operator[](std::int64_t i) const {
    return {i, i * block_, std::min((i + 1) * block_, length_) - 1};
  }

  class Iterator {
   public:
    Iterator(const Tiles& tiles, std::int64_t i) : tiles_(&tiles), i_(i) {}
    Rows operator*() const { return (*tiles_)[i_]; }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return i_ != other.i_; }

   private:
    const Tiles* tiles_;
    std::int64_t i_;
  };
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, count()}; }

 private:
  std::int64_t length_, block_;
};

/// Which (batch, head) pair and which tile of it CTA `cta` owns, when tiles run fastest, then heads, then batch
/// entries.
struct Place {
  Place(std::int64_t cta, std::int64_t tiles_per_head, std::int64_t heads)
      : tile(cta % tiles_per_head),
        batch_head(cta / tiles_per_head),
        batch(batch_head / heads),
        head(batch_head % heads) {}
  std::int64_t tile, batch_head, batch, head;
};

/// Which of rows x columns tiles is the `tile`th, by panels of `panel` columns, each of them row by row.
struct PanelPlace {
  PanelPlace(std::int64_t tile, std::int64_t rows, std::int64_t columns, std::int64_t panel) {
    const std::int64_t first = tile / (rows * panel) * panel, width = std::min(panel, columns - first);
    const std::int64_t in_panel = tile - rows * first;
    row = in_panel / width, column = first + in_panel % width;
  }
  std::int64_t row, column;
};

inline Bytes bytes(std::int64_t rows, std::int64_t width, std::int64_t element_bytes) {
  return Count(rows) * (Count(width) * Bytes(element_bytes));
}

/// The kv head that query head `head` of batch entry `batch` attends to, as an index over batch and kv heads.
inline std::int64_t kv_batch_head(const AttentionShape& s, std::int64_t batch, std::int64_t head) {
  return batch * s.num_kv_heads + head / s.group_size();
}

/// KernelWalk::heads_per_kv for heads that stack `pack` query heads: key padding makes batch entries differ.
inline std::int64_t heads_per_kv(const AttentionShape& s, std::int64_t pack) {
  return s.kv_lengths.empty() ? s.group_size() / pack : 0;
}

/// Is any of the keys in `c`, below `keys`, visible to any of the queries q_first .. q_last?
inline bool live(const AttentionShape& s, std::int64_t q_first, std::int64_t q_last, const Rows& c, std::int64_t keys) {
  return s.mask.tile_is_live(q_first, q_last, c.first, std::min(c.last, keys - 1), s.mask_offset());
}

/// Registers of a CTA that keeps an fp32 score tile and an fp32 output tile: those two, and a quarter more for operands
/// and addresses (two CTAs a SM for 128 x 64 tiles at d = 128 and one for 128 x 128, as the released kernels have).
inline std::int64_t register_bytes(std::int64_t block_q, std::int64_t block_kv, std::int64_t width) {
  return block_q * (block_kv + width) * 4 * 5 / 4;
}

}  // namespace hbmscope::loops
