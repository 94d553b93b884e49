#include "simulate/l2_cache.hpp"

#include <utility>

namespace hbmscope {
namespace {

// tensor 5 bits, batch_head 21, row 19, column 19
constexpr int kHeadBits = 21, kRowBits = 19, kColumnBits = 19;
static_assert(kTileKeyHeadShift == kRowBits + kColumnBits);

/// Keys are packed fields that count up one by one; one multiplication alone would leave them in long runs (this is the finaliser of SplitMix64).
std::size_t scatter(std::uint64_t key) {
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::size_t>(key ^ (key >> 31));
}

}  // namespace

std::uint64_t tile_key(const TileId& tile) {
  const auto head = static_cast<std::uint64_t>(tile.batch_head);
  const auto row = static_cast<std::uint64_t>(tile.row), column = static_cast<std::uint64_t>(tile.column);
  if ((head >> kHeadBits) != 0 || (row >> kRowBits) != 0 || (column >> kColumnBits) != 0) {
    throw Error(ErrorKind::usage, "the L2 simulation takes up to 2^21 heads and 2^19 tiles along a sequence", "take larger tiles, or --engine model");
  }
  return (((static_cast<std::uint64_t>(tile.tensor) << kHeadBits | head) << kRowBits | row) << kColumnBits) | column;
}

L2Cache::L2Cache(Bytes capacity) : capacity_(capacity.value()), table_(1 << 12, kNone) {}

std::size_t L2Cache::find_slot(std::uint64_t key) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = scatter(key) & mask;
  while (table_[slot] != kNone && entries_[table_[slot]].key != key) slot = (slot + 1) & mask;
  return slot;
}

bool L2Cache::look_up(const TileRequest& r) {
  if (r.bytes > capacity_) {
    (r.store ? written_ : read_)[static_cast<std::size_t>(r.tensor)] += r.bytes;
    return r.store;
  }
  const std::size_t slot = find_slot(r.key);
  const bool held = table_[slot] != kNone;
  if (!held) {
    if (!r.store) read_[static_cast<std::size_t>(r.tensor)] += r.bytes;
    insert(r);
  } else {
    Entry& entry = entries_[table_[slot]];
    entry.dirty = entry.dirty || r.store;
    to_front(table_[slot]);
  }
  if (newest_ != r.key) second_newest_ = std::exchange(newest_, r.key);
  return held || r.store;
}

void L2Cache::insert(const TileRequest& r) {
  while (used_ > capacity_ - r.bytes) evict_oldest();
  if ((entries_.size() - free_.size() + 1) * 2 > table_.size()) grow();
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  entries_[index] = {r.key, r.bytes, kNone, kNone, r.tensor, r.store};
  table_[find_slot(r.key)] = index;
  push_front(index);
  used_ += r.bytes;
}

void L2Cache::evict_oldest() {
  const std::uint32_t index = tail_;
  const Entry& entry = entries_[index];
  if (entry.dirty) written_[static_cast<std::size_t>(entry.tensor)] += entry.bytes;
  used_ -= entry.bytes;
  if (entry.key == newest_ || entry.key == second_newest_) newest_ = second_newest_ = UINT64_MAX;
  erase_slot(find_slot(entry.key));
  unlink(index);
  free_.push_back(index);
}

void L2Cache::erase_slot(std::size_t slot) {
  // Linear probing without tombstones: move later entries of the same run back into the hole.
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = slot;
  for (std::size_t next = (hole + 1) & mask; table_[next] != kNone; next = (next + 1) & mask) {
    const std::size_t home = scatter(entries_[table_[next]].key) & mask;
    if (((next - home) & mask) >= ((next - hole) & mask)) {
      table_[hole] = table_[next];
      hole = next;
    }
  }
  table_[hole] = kNone;
}

void L2Cache::grow() {
  table_.assign(table_.size() * 2, kNone);
  for (std::uint32_t index = head_; index != kNone; index = entries_[index].older) table_[find_slot(entries_[index].key)] = index;
}

void L2Cache::unlink(std::uint32_t index) {
  const Entry& entry = entries_[index];
  (entry.newer == kNone ? head_ : entries_[entry.newer].older) = entry.older;
  (entry.older == kNone ? tail_ : entries_[entry.older].newer) = entry.newer;
}

void L2Cache::push_front(std::uint32_t index) {
  entries_[index].newer = kNone;
  entries_[index].older = head_;
  (head_ == kNone ? tail_ : entries_[head_].newer) = index;
  head_ = index;
}

void L2Cache::to_front(std::uint32_t index) {
  if (head_ == index) return;
  unlink(index);
  push_front(index);
}

void L2Cache::flush() {
  for (std::uint32_t index = head_; index != kNone; index = entries_[index].older) {
    Entry& entry = entries_[index];
    if (entry.dirty) written_[static_cast<std::size_t>(entry.tensor)] += entry.bytes;
    entry.dirty = false;
  }
}

Traffic L2Cache::take_traffic() {
  Traffic traffic(Boundary::l2_hbm);
  for (const TensorInfo& tensor : kTensors) {
    const auto t = static_cast<std::size_t>(tensor.tensor);
    traffic.read(tensor.tensor, Bytes(read_[t]));
    traffic.write(tensor.tensor, Bytes(written_[t]));
  }
  read_ = {};
  written_ = {};
  return traffic;
}

}  // namespace hbmscope
