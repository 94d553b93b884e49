#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "model/algorithm.hpp"
#include "simulate/schedule_listener.hpp"

namespace hbmscope {

/// A tile's place in one 64-bit word, or an Error (kind usage) where the shape has more tiles than the fields hold.
std::uint64_t tile_key(const TileId& tile);
/// The tile of a key.
TileId tile_of(std::uint64_t key);

/// Makes of numbers that count up one by one such as look drawn (the finaliser of SplitMix64).
inline std::uint64_t scatter(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

inline constexpr int kTileKeyHeadShift = 38;  ///< where a key's batch_head begins

/// So many heads on: what turns the tiles of one head into those of a later one. K and V follow the kv head.
struct HeadShift {
  std::int64_t heads = 0, kv_heads = 0;
  [[nodiscard]] std::uint64_t moved(std::uint64_t key, Tensor tensor) const {
    const bool per_kv_head = tensor == Tensor::K || tensor == Tensor::V;
    return key + (static_cast<std::uint64_t>(per_kv_head ? kv_heads : heads) << kTileKeyHeadShift);
  }
};

/// One tile request as a CTA issues it.
struct TileRequest {
  std::uint64_t key;
  std::int64_t bytes;
  Tensor tensor;
  bool store;
};

/// How an L2 is built.
struct L2Build {
  Bytes capacity;       ///< of one half, or of the L2 where it has none
  bool halves = false;  ///< each half serves half of the SMs, and is the home of half of the tiles
  bool hashed = false;  ///< a line may lie in one set of 16 only, by a hash, so some sets are more crowded than others

  /// Heads after which tiles are dealt to sets, and CTAs to halves, as from the first head on.
  [[nodiscard]] std::int64_t heads_dealt_alike() const { return halves || hashed ? 4 : 1; }
};

/// An L2 that holds whole tiles, evicts the least recently used, allocates on loads and stores, and writes a dirty tile
/// back when it leaves. A store fetches nothing: tiles are written whole. A tile larger than the capacity passes
/// through it.
///
/// With two halves a tile comes from HBM to its home, the half that its address belongs to. Who asks from the other
/// half leaves a copy there, and finds it again without the home's noticing: so a tile that is wanted all the time may
/// become the oldest at home. When it leaves its home it leaves L2, its copy too, and if it was written it goes to HBM.
///
/// With hashed sets a tile stands for lines of equally crowded sets: see kRoom.
class L2Cache {
 public:
  explicit L2Cache(const L2Build& build);
  explicit L2Cache(Bytes capacity) : L2Cache(L2Build{capacity}) {}
  /// Tells `listener`, unless it is null, which tiles leave from now on.
  void tell(ScheduleListener* listener) { listener_ = listener; }

  /// An SM of half `half` (0, or 1 where there are halves) asks for tile `key`, in all else like `r`. False for a load
  /// that had to go to HBM.
  bool request(std::uint64_t key, const TileRequest& r, unsigned half = 0) {
    // The last two tiles asked for are the newest already, so asking for them again changes nothing: this is what CTAs
    // in step do.
    const Newest& newest = newest_[half];
    if (!r.store && (key == newest.first || key == newest.second)) return true;
    return look_up(key, r, half);
  }
  [[nodiscard]] const L2Build& build() const { return build_; }
  /// Does the cache hold tiles of this size? A larger one passes through it.
  [[nodiscard]] bool takes(std::int64_t bytes) const { return bytes <= capacity_; }
  /// Writes every dirty tile back.
  void flush();
  /// Bytes across l2_hbm since the last call.
  Traffic take_traffic();

  /// Which tiles are held, from the newest to the oldest, and which of them are dirty.
  struct State {
    struct Held {
      std::uint64_t key;
      Tensor tensor;
      bool dirty, copy;
    };
    std::vector<Held> tiles;
    std::array<Held, 4> newest;
    /// Is this the same state as `earlier`, with every tile moved on?
    [[nodiscard]] bool is_moved_on_from(const State& earlier, const HeadShift& by) const;
  };
  [[nodiscard]] State state() const;
  [[nodiscard]] std::size_t tiles_held() const { return entries_.size() - free_.size(); }
  /// As if what led to this state had been done to tiles of later heads.
  void move_on(const HeadShift& by);
  using Sums = std::array<std::int64_t, kTensorCount>;
  Sums& read() { return read_; }  ///< bytes from HBM since the last take_traffic()
  Sums& written() { return written_; }
  [[nodiscard]] const Sums& read() const { return read_; }
  [[nodiscard]] const Sums& written() const { return written_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::size_t kClasses = 8;  ///< of sets, from the most crowded to the least
  /// A set of 16 lines has lost one when 16 others of the set were asked for since. As the hash spreads them, that is
  /// so for a share P(Poisson(16 x) >= 16) of all sets once x times the capacity was asked for: x where the share is
  /// 1/16, 3/16, ... 15/16, the middle of each class. In thousandths.
  static constexpr std::array<std::int64_t, kClasses> kRoom{648, 776, 863, 941, 1019, 1105, 1215, 1409};

  /// A tile in order of use, at home or as a copy in the other half.
  struct Link {
    std::uint32_t newer = kNone, older = kNone;
  };
  /// A tile that its home holds.
  struct Entry {
    std::uint64_t key;
    std::int64_t bytes;
    std::array<Link, 2> links;  ///< at home, as a copy
    std::uint32_t next;         ///< in the same bucket
    std::uint32_t bucket;
    std::array<std::uint8_t, 2> lists;  ///< of its home, of the other half
    std::uint8_t home;
    Tensor tensor;
    bool dirty, copied;
  };
  /// Tiles of one half in one class of sets. A node is an entry's number, twice, and 1 more for its copy.
  struct List {
    std::int64_t capacity = 0, used = 0;
    std::uint32_t newest = kNone, oldest = kNone;
  };
  struct Newest {
    std::uint64_t first = UINT64_MAX, second = UINT64_MAX;
  };

  bool look_up(std::uint64_t key, const TileRequest& r, unsigned half);
  std::uint32_t insert(std::uint64_t key, const TileRequest& r, std::size_t bucket);
  void copy(std::uint32_t entry);
  void drop_copy(std::uint32_t entry);
  void make_room(List& list, std::int64_t bytes);
  void evict(std::uint32_t entry);
  void forget_newest(const Entry& entry, unsigned half);
  [[nodiscard]] Link& link(std::uint32_t node) { return entries_[node / 2].links[node % 2]; }
  [[nodiscard]] List& list_of(std::uint32_t node) { return lists_[entries_[node / 2].lists[node % 2]]; }
  void to_front(std::uint32_t node);
  void unlink(std::uint32_t node);
  void push_front(std::uint32_t node);
  [[nodiscard]] std::size_t bucket_of(std::uint64_t key) const;
  void leave_bucket(std::uint32_t entry);
  void rehash(std::size_t buckets);
  /// Calls `f` with each node.
  template <class F>
  void each_node(F&& f) const;
  /// Calls `f` with each entry.
  template <class F>
  void each_entry(F&& f) const;

  L2Build build_;
  std::int64_t capacity_;
  std::array<Newest, 2> newest_;
  std::vector<List> lists_;  ///< by half, then by class
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> buckets_;  ///< first entry of each, or kNone
  Sums read_{}, written_{};
  ScheduleListener* listener_ = nullptr;
};

}  // namespace hbmscope
