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

/// An L2 that holds whole tiles, evicts the least recently used, allocates on loads and stores, and writes a dirty tile
/// back when it leaves. A store fetches nothing: tiles are written whole. A tile larger than the cache passes through
/// it.
class L2Cache {
 public:
  explicit L2Cache(Bytes capacity);
  /// Tells `listener`, unless it is null, which tiles leave from now on.
  void tell(ScheduleListener* listener) { listener_ = listener; }

  /// Asks for tile `key`, in all else like `r`. False for a load that had to go to HBM.
  bool request(std::uint64_t key, const TileRequest& r) {
    // The last two tiles asked for are the newest already, so asking for them again changes nothing: this is what CTAs
    // in step do.
    if (!r.store && (key == newest_ || key == second_newest_)) return true;
    return look_up(key, r);
  }
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
      bool dirty;
    };
    std::vector<Held> tiles;
    std::array<Held, 2> newest;
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
  struct Entry {
    std::uint64_t key;
    std::int64_t bytes;
    std::uint32_t newer, older;  ///< in order of use
    std::uint32_t next;          ///< in the same bucket
    std::uint32_t bucket;
    Tensor tensor;
    bool dirty;
  };

  bool look_up(std::uint64_t key, const TileRequest& r);
  void to_front(std::uint32_t entry);
  void unlink(std::uint32_t entry);
  void push_front(std::uint32_t entry);
  void evict_oldest();
  void insert(std::uint64_t key, const TileRequest& r, std::size_t bucket);
  [[nodiscard]] std::size_t bucket_of(std::uint64_t key) const;
  void leave_bucket(std::uint32_t entry);
  void rehash(std::size_t buckets);

  std::int64_t capacity_;
  std::int64_t used_ = 0;
  std::uint64_t newest_ = UINT64_MAX, second_newest_ = UINT64_MAX;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> buckets_;  ///< first entry of each, or kNone
  std::uint32_t head_ = kNone, tail_ = kNone;
  Sums read_{}, written_{};
  ScheduleListener* listener_ = nullptr;
};

}  // namespace hbmscope
