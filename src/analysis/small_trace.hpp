#pragma once
#include <string_view>
#include <vector>

#include "analysis/trace.hpp"

/// A shape scaled down until its schedule can be watched tile by tile.
namespace hbmscope {

/// What the scaled L2 holds: the same as the whole one does of the whole shape.
enum class L2Holds : std::uint8_t {
  as_given,    ///< nothing was scaled, so the L2 is the GPU's
  nothing,     ///< there is no L2
  half_of_kv,  ///< K and V of the heads that run at one time do not fit
  rows,        ///< K and V fit, S and P do not
  everything,  ///< S and P fit too
};

/// Something that happened to a tile.
struct TileEvent {
  bool request;       ///< else the tile left L2
  std::size_t stage;  ///< of SmallSchedule::stages
  std::int64_t cta, step;
  bool first_of_step;  ///< a CTA's new step begins: what was on chip for the last one goes
  TileId tile;
  Bytes bytes;
  bool store;
  bool through_hbm;  ///< a request whose bytes cross l2_hbm at once; a tile that is written back as it leaves
};

struct SmallSchedule {
  const AlgorithmResult* result;  ///< within SmallTrace::trace
  std::vector<std::string_view> stages;
  std::vector<TileEvent> events;
  Traffic sm_l2{Boundary::sm_l2}, l2_hbm{Boundary::l2_hbm};  ///< what the events add up to
};

struct SmallTrace {
  AttentionShape full;                     ///< as it was asked for
  AttentionShape small;                    ///< one head of a few tiles
  std::int64_t block_q = 0, block_kv = 0;  ///< of every algorithm that has tiles
  L2Holds l2_holds = L2Holds::as_given;
  Bytes l2;     ///< of the small machine, which has one SM that runs one CTA at a time
  Trace trace;  ///< of the small shape
  std::vector<SmallSchedule> schedules;
};

inline constexpr std::int64_t kMostTilesASide = 6;  ///< along queries and along keys

/// Scales the request's shape to one head of at most kMostTilesASide tiles a side, a head dim of at most a tile's rows,
/// and an L2 that holds what the whole one does, and traces the request's algorithms there (by default those of its
/// pass).
SmallTrace small_trace(const RunRequest& request);

}  // namespace hbmscope
