#include "simulate/l2_cache.hpp"

#include <algorithm>
#include <utility>

namespace hbmscope {
namespace {

// tensor 5 bits, batch_head 21, row 19, column 19
constexpr int kHeadBits = 21, kRowBits = 19, kColumnBits = 19;
static_assert(kTileKeyHeadShift == kRowBits + kColumnBits);

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

L2Cache::L2Cache(const L2Build& build)
    : build_(build),
      capacity_(build.capacity.value()),
      lists_((build.halves ? 2 : 1) * (build.hashed ? kClasses : 1)),
      buckets_(1 << 12, kNone) {
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    constexpr std::int64_t kWhole = 1000 * std::int64_t{kClasses};
    const std::int64_t room = build_.hashed ? kRoom[i % kClasses] : kWhole;
    lists_[i].capacity = capacity_ / kWhole * room + capacity_ % kWhole * room / kWhole;
  }
}

std::size_t L2Cache::bucket_of(std::uint64_t key) const {
  return scatter(key) & (buckets_.size() - 1);  // unscattered, keys that count up one by one would lie in long runs
}

bool L2Cache::look_up(std::uint64_t key, const TileRequest& r, unsigned half) {
  if (r.bytes > capacity_) {
    (r.store ? written_ : read_)[static_cast<std::size_t>(r.tensor)] += r.bytes;
    return r.store;
  }
  const std::size_t bucket = bucket_of(key);
  std::uint32_t index = buckets_[bucket];
  while (index != kNone && entries_[index].key != key) index = entries_[index].next;
  const bool held = index != kNone;
  if (!held) {
    if (!r.store) read_[static_cast<std::size_t>(r.tensor)] += r.bytes;
    index = insert(key, r, bucket);
  }
  const bool at_home = !build_.halves || half == entries_[index].home;
  entries_[index].dirty |= r.store;
  if (at_home || r.store || !entries_[index].copied) to_front(2 * index);
  if (!at_home) {
    copy(index);
  } else if (r.store && entries_[index].copied) {
    drop_copy(index);  // it is what the tile was before
  }
  Newest& newest = newest_[half];
  if (newest.first != key) newest.second = std::exchange(newest.first, key);
  return held || r.store;
}

std::uint32_t L2Cache::insert(std::uint64_t key, const TileRequest& r, std::size_t bucket) {
  // Tiles are dealt in turn, so that each half and class gets its share of every tensor, and of heads that are at the
  // same tile.
  const std::uint64_t turn = (key >> kColumnBits) + key, head = (key >> kTileKeyHeadShift) % 4;
  const std::size_t of_class = build_.hashed ? (turn / 2 + 2 * head) % kClasses : 0;
  const std::size_t home = build_.halves ? turn % 2 : 0, lists_of_half = build_.hashed ? kClasses : 1;
  const auto list = [&](std::size_t half) { return static_cast<std::uint8_t>(half * lists_of_half + of_class); };
  make_room(lists_[list(home)], r.bytes);
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  entries_[index] = {key,
                     r.bytes,
                     {},
                     buckets_[bucket],
                     static_cast<std::uint32_t>(bucket),
                     {list(home), list(build_.halves ? 1 - home : 0)},
                     static_cast<std::uint8_t>(home),
                     r.tensor,
                     false,
                     false};
  buckets_[bucket] = index;
  push_front(2 * index);
  list_of(2 * index).used += r.bytes;
  if ((entries_.size() - free_.size()) * 2 > buckets_.size()) rehash(buckets_.size() * 2);
  return index;
}

/// Makes the tile the newest of the half that is not its home.
void L2Cache::copy(std::uint32_t index) {
  if (entries_[index].copied) return to_front(2 * index + 1);
  List& list = list_of(2 * index + 1);
  make_room(list, entries_[index].bytes);
  entries_[index].copied = true;
  push_front(2 * index + 1);
  list.used += entries_[index].bytes;
}

void L2Cache::drop_copy(std::uint32_t index) {
  Entry& entry = entries_[index];
  forget_newest(entry, 1 - entry.home);
  unlink(2 * index + 1);
  list_of(2 * index + 1).used -= entry.bytes;
  entry.copied = false;
}

/// A tile larger than the list's share of the capacity has it alone.
void L2Cache::make_room(List& list, std::int64_t bytes) {
  while (list.used > list.capacity - bytes && list.oldest != kNone) {
    const std::uint32_t node = list.oldest;
    node % 2 == 1 ? drop_copy(node / 2) : evict(node / 2);
  }
}

void L2Cache::evict(std::uint32_t index) {
  if (entries_[index].copied) drop_copy(index);
  const Entry& entry = entries_[index];
  if (entry.dirty) written_[static_cast<std::size_t>(entry.tensor)] += entry.bytes;
  if (listener_ != nullptr) listener_->left_l2(tile_of(entry.key), Bytes(entry.bytes), entry.dirty);
  forget_newest(entry, entry.home);
  list_of(2 * index).used -= entry.bytes;
  leave_bucket(index);
  unlink(2 * index);
  free_.push_back(index);
}

void L2Cache::forget_newest(const Entry& entry, unsigned half) {
  Newest& newest = newest_[half];
  if (entry.key == newest.first || entry.key == newest.second) newest = {};
}

void L2Cache::leave_bucket(std::uint32_t index) {
  std::uint32_t* link = &buckets_[entries_[index].bucket];
  while (*link != index) link = &entries_[*link].next;
  *link = entries_[index].next;
}

template <class F>
void L2Cache::each_node(F&& f) const {
  for (const List& list : lists_) {
    for (std::uint32_t node = list.newest; node != kNone; node = entries_[node / 2].links[node % 2].older) f(node);
  }
}

template <class F>
void L2Cache::each_entry(F&& f) const {
  each_node([&](std::uint32_t node) {
    if (node % 2 == 0) f(node / 2);
  });
}

void L2Cache::rehash(std::size_t buckets) {
  buckets_.assign(buckets, kNone);
  each_entry([&](std::uint32_t index) {
    Entry& entry = entries_[index];
    entry.bucket = static_cast<std::uint32_t>(bucket_of(entry.key));
    entry.next = buckets_[entry.bucket];
    buckets_[entry.bucket] = index;
  });
}

L2Cache::State L2Cache::state() const {
  State state;
  state.tiles.reserve(tiles_held());
  each_node([&](std::uint32_t node) {
    const Entry& entry = entries_[node / 2];
    state.tiles.push_back({entry.key, entry.tensor, entry.dirty, node % 2 == 1});
  });
  const auto of = [](std::uint64_t key) { return State::Held{key, tensor_of(key), false, false}; };
  state.newest = {of(newest_[0].first), of(newest_[0].second), of(newest_[1].first), of(newest_[1].second)};
  return state;
}

bool L2Cache::State::is_moved_on_from(const State& earlier, const HeadShift& by) const {
  const auto moved = [&](const Held& now, const Held& then) {
    if (then.key == UINT64_MAX) return now.key == UINT64_MAX;
    return now.dirty == then.dirty && now.copy == then.copy && now.key == by.moved(then.key, then.tensor);
  };
  return std::equal(newest.begin(), newest.end(), earlier.newest.begin(), moved) &&
         std::equal(tiles.begin(), tiles.end(), earlier.tiles.begin(), earlier.tiles.end(), moved);
}

void L2Cache::move_on(const HeadShift& by) {
  each_entry([&](std::uint32_t index) {
    Entry& entry = entries_[index];
    entry.key = by.moved(entry.key, entry.tensor);
  });
  for (Newest& newest : newest_) {
    for (std::uint64_t* key : {&newest.first, &newest.second}) {
      if (*key != UINT64_MAX) *key = by.moved(*key, tensor_of(*key));
    }
  }
  rehash(buckets_.size());
}

void L2Cache::unlink(std::uint32_t node) {
  const Link at = link(node);
  List& list = list_of(node);
  (at.newer == kNone ? list.newest : link(at.newer).older) = at.older;
  (at.older == kNone ? list.oldest : link(at.older).newer) = at.newer;
}

void L2Cache::push_front(std::uint32_t node) {
  List& list = list_of(node);
  link(node) = {kNone, list.newest};
  (list.newest == kNone ? list.oldest : link(list.newest).newer) = node;
  list.newest = node;
}

void L2Cache::to_front(std::uint32_t node) {
  if (list_of(node).newest == node) return;
  unlink(node);
  push_front(node);
}

void L2Cache::flush() {
  each_entry([&](std::uint32_t index) {
    Entry& entry = entries_[index];
    if (entry.dirty) {
      written_[static_cast<std::size_t>(entry.tensor)] += entry.bytes;
      if (listener_ != nullptr) listener_->left_l2(tile_of(entry.key), Bytes(entry.bytes), true);
    }
    entry.dirty = false;
  });
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
