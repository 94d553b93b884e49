#pragma once
#include "model/algorithm.hpp"

namespace hbmscope {

/// flash_v2's loop nest and algebra for tiles of `pack` stacked query heads; split_kv with one split is the same
/// kernel.
std::vector<KernelWalk> walk_flash_v2(const AttentionShape& shape, const TilePlan& plan, std::int64_t pack);
std::vector<StageTraffic> close_flash_v2(const AttentionShape& shape, const TilePlan& plan, std::int64_t pack);

/// How many query heads share a tile: the whole GQA group or one.
inline std::int64_t pack_of(const AttentionShape& shape, const TilePlan& plan, bool by_default) {
  return plan.pack_gqa.value_or(by_default) ? shape.group_size() : 1;
}

}  // namespace hbmscope
