#include "simulate/l2_cache.hpp"

#include <algorithm>
#include <utility>

namespace hbmscope {
namespace {

// tensor 5 bits, batch_head 21, row 19, column 19
constexpr int kHeadBits = 21, kRowBits = 19, kColumnBits = 19;
static_assert(kTileKeyHeadShift == kRowBits + kColumnBits);

/// Keys are packed fields that count up one by one; one multiplication alone would leave them in long runs (this is the
/// finaliser of SplitMix64).
std::size_t scatter(std::uint64_t key) {
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::size_t>(key ^ (key >> 31));
}

Tensor tensor_of(std::uint64_t key) {
  return static_cast<Tensor>(key >> (kTileKeyHeadShift + kHeadBits));
}

}  // namespace

std::uint64_t tile_key(const TileId& tile) {
  const auto head = static_cast<std::uint64_t>(tile.batch_head);
  const auto row = static_cast<std::uint64_t>(tile.row), column = static_cast<std::uint64_t>(tile.column);
  if ((head >> kHeadBits) != 0 || (row >> kRowBits) != 0 || (column >> kColumnBits) != 0) {
    throw Error(ErrorKind::usage, "the L2 simulation takes up to 2^21 heads and 2^19 tiles along a sequence",
                "take larger tiles, or --engine model");
  }
  return (((static_cast<std::uint64_t>(tile.tensor) << kHeadBits | head) << kRowBits | row) << kColumnBits) | column;
}

TileId tile_of(std::uint64_t key) {
  const auto field = [&](int shift, int bits) {
    return static_cast<std::int64_t>((key >> shift) & ((std::uint64_t{1} << bits) - 1));
  };
  return {tensor_of(key), field(kTileKeyHeadShift, kHeadBits), field(kColumnBits, kRowBits), field(0, kColumnBits)};
}

L2Cache::L2Cache(Bytes capacity) : capacity_(capacity.value()), buckets_(1 << 12, kNone) {}

std::size_t L2Cache::bucket_of(std::uint64_t key) const {
  return scatter(key) & (buckets_.size() - 1);
}

bool L2Cache::look_up(std::uint64_t key, const TileRequest& r) {
  if (r.bytes > capacity_) {
    (r.store ? written_ : read_)[static_cast<std::size_t>(r.tensor)] += r.bytes;
    return r.store;
  }
  const std::size_t bucket = bucket_of(key);
  std::uint32_t index = buckets_[bucket];
  while (index != kNone && entries_[index].key != key) index = entries_[index].next;
  const bool held = index != kNone;
  if (held) {
    entries_[index].dirty = entries_[index].dirty || r.store;
    to_front(index);
  } else {
    if (!r.store) read_[static_cast<std::size_t>(r.tensor)] += r.bytes;
    insert(key, r, bucket);
  }
  if (newest_ != key) second_newest_ = std::exchange(newest_, key);
  return held || r.store;
}

void L2Cache::insert(std::uint64_t key, const TileRequest& r, std::size_t bucket) {
  while (used_ > capacity_ - r.bytes) evict_oldest();
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  entries_[index] = {key,      r.bytes, kNone, kNone, buckets_[bucket], static_cast<std::uint32_t>(bucket),
                     r.tensor, r.store};
  buckets_[bucket] = index;
  push_front(index);
  used_ += r.bytes;
  if ((entries_.size() - free_.size()) * 2 > buckets_.size()) rehash(buckets_.size() * 2);
}

void L2Cache::evict_oldest() {
  const std::uint32_t index = tail_;
  const Entry& entry = entries_[index];
  if (entry.dirty) written_[static_cast<std::size_t>(entry.tensor)] += entry.bytes;
  if (listener_ != nullptr) listener_->left_l2(tile_of(entry.key), Bytes(entry.bytes), entry.dirty);
  used_ -= entry.bytes;
  if (entry.key == newest_ || entry.key == second_newest_) newest_ = second_newest_ = UINT64_MAX;
  leave_bucket(index);
  unlink(index);
  free_.push_back(index);
}

void L2Cache::leave_bucket(std::uint32_t index) {
  std::uint32_t* link = &buckets_[entries_[index].bucket];
  while (*link != index) link = &entries_[*link].next;
  *link = entries_[index].next;
}

void L2Cache::rehash(std::size_t buckets) {
  buckets_.assign(buckets, kNone);
  for (std::uint32_t index = head_; index != kNone; index = entries_[index].older) {
    Entry& entry = entries_[index];
    entry.bucket = static_cast<std::uint32_t>(bucket_of(entry.key));
    entry.next = buckets_[entry.bucket];
    buckets_[entry.bucket] = index;
  }
}

L2Cache::State L2Cache::state() const {
  State state;
  state.tiles.reserve(tiles_held());
  for (std::uint32_t index = head_; index != kNone; index = entries_[index].older) {
    state.tiles.push_back({entries_[index].key, entries_[index].tensor, entries_[index].dirty});
  }
  const auto of = [](std::uint64_t key) { return State::Held{key, tensor_of(key), false}; };
  state.newest = {of(newest_), of(second_newest_)};
  return state;
}

bool L2Cache::State::is_moved_on_from(const State& earlier, const HeadShift& by) const {
  const auto moved = [&](const Held& now, const Held& then) {
    if (then.key == UINT64_MAX) return now.key == UINT64_MAX;
    return now.dirty == then.dirty && now.key == by.moved(then.key, then.tensor);
  };
  return std::equal(newest.begin(), newest.end(), earlier.newest.begin(), moved) &&
         std::equal(tiles.begin(), tiles.end(), earlier.tiles.begin(), earlier.tiles.end(), moved);
}

void L2Cache::move_on(const HeadShift& by) {
  for (std::uint32_t index = head_; index != kNone; index = entries_[index].older) {
    entries_[index].key = by.moved(entries_[index].key, entries_[index].tensor);
  }
  for (std::uint64_t* key : {&newest_, &second_newest_}) {
    if (*key != UINT64_MAX) *key = by.moved(*key, tensor_of(*key));
  }
  rehash(buckets_.size());
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
    if (entry.dirty) {
      written_[static_cast<std::size_t>(entry.tensor)] += entry.bytes;
      if (listener_ != nullptr) listener_->left_l2(tile_of(entry.key), Bytes(entry.bytes), true);
    }
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
