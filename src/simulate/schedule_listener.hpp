#pragma once
#include <cstdint>
#include <string_view>

#include "core/units.hpp"
#include "model/algorithm.hpp"

namespace hbmscope {

/// One tile request as it reaches the L2: who asks for what, and when.
struct PlayedRequest {
  std::int64_t sm;      ///< the CTA's SM; of a cluster, the first of its SMs
  std::int64_t place;   ///< which of the CTAs that the SM holds at one time, from 0
  std::int64_t places;  ///< how many it has room for
  std::int64_t cta;     ///< in ascending order of the grid; a cluster counts as one
  std::int64_t step;    ///< of that CTA, from 0: a turn of its inner loop
  std::int64_t index;   ///< which of the step's requests, from 0
  std::int64_t count;   ///< how many the step has
  TileId tile;
  Bytes bytes;  ///< across sm_l2
  bool store;
  bool through_hbm;  ///< the bytes cross l2_hbm at once: a load of a tile that L2 does not hold, or no L2 to take a
                     ///< store
};

/// Told of all that a simulation of the L2 does, in its order. Time is counted in steps of the simulation: in one,
/// every CTA that runs takes a turn of its inner loop, unless it is stalled.
class ScheduleListener {
 public:
  virtual ~ScheduleListener() = default;
  /// A kernel starts.
  virtual void stage(std::string_view name) = 0;
  /// What follows happens in step `now` of the simulation; never less than before.
  virtual void time(std::int64_t now) = 0;
  virtual void request(const PlayedRequest& request) = 0;
  /// A tile leaves L2, or is written back as the run ends; with `written_back`, its bytes go to HBM.
  virtual void left_l2(const TileId& tile, Bytes bytes, bool written_back) = 0;
};

}  // namespace hbmscope
