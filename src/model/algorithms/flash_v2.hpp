#pragma once
#include "model/algorithm.hpp"

namespace hbmscope {

/// flash_v2's loop nest and algebra for tiles of `pack` stacked query heads; split_kv with one split is the same
/// kernel.
std::vector<KernelWalk> walk_flash_v2(const AttentionShape& shape, const TilePlan& plan, std::int64_t pack);
std::vector<StageTraffic> close_flash_v2(const AttentionShape& shape, const TilePlan& plan, std::int64_t pack);

/// KernelWalk::younger_stall of two CTAs of flash_v2, or of a kernel of its structure, on an SM: measured by the times
/// at which CTAs start and end on an H200 (docs/l2-model.md, CTAs that share an SM). Where `plan.stages` is 1 up to
/// head_dim 128, as FlashAttention-2 has it, inferred from that kernel's HBM reads.
double younger_stall(const AttentionShape& shape, const TilePlan& plan);

/// How many query heads share a tile: the whole GQA group or one.
inline std::int64_t pack_of(const AttentionShape& shape, const TilePlan& plan, bool by_default) {
  return plan.pack_gqa.value_or(by_default) ? shape.group_size() : 1;
}

}  // namespace hbmscope
