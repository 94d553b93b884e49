#pragma once
#include <cstdint>
#include <string_view>

#include "model/attention_shape.hpp"
#include "model/tile_plan.hpp"
#include "model/traffic.hpp"

namespace hbmscope {

/// What one line of `hbmscope batch` asks for, from closed forms alone.
struct BatchFigures {
  Traffic traffic{Boundary::sm_l2};
  Count live_pairs;
  Bytes compulsory;  ///< of the algorithm's own pass
};

/// Most query tiles, over the entries of a padded batch, that a closed form may sum over: well under a second of work.
inline constexpr std::int64_t kMaxBatchTiles = std::int64_t{1} << 27;

/// The figures of a valid shape. No block is chosen for the caller: an algorithm that has tiles needs block_q and
/// block_kv in the plan. Throws an Error (kind data) that names /algorithm or the plan key at fault, and one of any
/// kind where a count does not fit 64 bits.
BatchFigures batch_figures(const AttentionShape& shape, std::string_view algorithm_name, const TilePlan& plan);

}  // namespace hbmscope
