#pragma once
#include <vector>

#include "model/algorithm.hpp"

namespace hbmscope {

/// Counts every tile that a walk reports: the sm_l2 boundary, as simulated.
class TrafficCounter : public TileListener {
 public:
  void load(const TileId& tile, Bytes bytes) override { traffic_.read(tile.tensor, bytes); }
  void store(const TileId& tile, Bytes bytes) override { traffic_.write(tile.tensor, bytes); }
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }

 private:
  Traffic traffic_{Boundary::sm_l2};
};

/// Walks each kernel with a counter of its own.
std::vector<StageTraffic> simulate_sm_l2(const std::vector<KernelWalk>& kernels);

}  // namespace hbmscope
