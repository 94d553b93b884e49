#pragma once
#include <vector>

#include "simulate/l2_cache.hpp"

namespace hbmscope {

/// What one pass of a CTA asks for, with steps that repeat stored once: a loop over key tiles asks for the same tiles
/// again, each one further on.
class TileTrace : public TileListener {
 public:
  struct Request {
    TileRequest first;
    std::uint64_t key_stride;  ///< added to the key at each repeat
  };
  struct Steps {
    std::uint32_t begin, end;  ///< requests of one step
    std::int64_t repeats;
  };
  /// Bytes of the whole pass by tensor.
  struct Total {
    Tensor tensor;
    std::int64_t read, write;
  };

  void load(const TileId& tile, Bytes bytes) override { add(tile, bytes, false); }
  void store(const TileId& tile, Bytes bytes) override { add(tile, bytes, true); }
  void step() override;
  /// Ends the pass: closes its last step and sums it up.
  void finish();
  void clear();

  [[nodiscard]] const std::vector<Steps>& steps() const { return steps_; }
  [[nodiscard]] const Request& request(std::uint32_t i) const { return requests_[i]; }
  [[nodiscard]] const std::vector<Total>& totals() const { return totals_; }
  [[nodiscard]] bool empty() const { return steps_.empty(); }

 private:
  void add(const TileId& tile, Bytes bytes, bool store) {
    pending_.push_back({{tile_key(tile), bytes.value(), tile.tensor, store}, 0});
  }
  [[nodiscard]] bool continues(const Steps& last) const;

  std::vector<Request> requests_, pending_;
  std::vector<Steps> steps_;
  std::vector<Total> totals_;
};

}  // namespace hbmscope
