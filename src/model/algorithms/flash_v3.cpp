#include <algorithm>

#include "model/algorithms/all.hpp"
#include "model/algorithms/closed_form.hpp"
#include "model/algorithms/flash_v2.hpp"
#include "model/plan_choice.hpp"

namespace hbmscope {
namespace {

// FlashAttention-3 moves the tiles that FlashAttention-2 moves, in the same loops: what is new happens on chip. So its
// traffic is that of flash_v2 under its own tiles, and its own are the padding and the tiles.

/// Wider heads are predicted as they are.
bool has_kernels(const AttentionShape& s) {
  return std::max(s.head_dim, s.head_dim_v) <= 256;
}

std::vector<KernelWalk> walk(const AttentionShape& s, const TilePlan& plan) {
  std::vector<KernelWalk> kernels = walk_flash_v2(s, plan, 1);
  kernels[0].younger_stall = 0;  // its kernels run one CTA an SM; what two would do to each other nobody has seen
  const std::int64_t tiles = (plan.block_q + 2 * plan.stages * plan.block_kv) * flash_v3_width(s) * s.element_bytes();
  if (has_kernels(s)) kernels[0].smem_bytes = tiles + flash_v3_turned_bytes(s, plan);
  return kernels;
}

std::vector<StageTraffic> closed_form(const AttentionShape& s, const TilePlan& plan) {
  return close_flash_v2(s, plan, 1);
}

/// The products of a warpgroup run over whole panels.
FlopCount flops(const AttentionShape& s, const TilePlan& plan) {
  // CTAs of a cluster compute what one tile of all their rows would, were it visible to one of them only.
  const std::int64_t rows = plan.block_q * cluster_of(plan);
  const Count tiles = Count(s.num_heads) * closed::tile_sums(s, rows, plan.block_kv, 1).tiles;
  AttentionShape padded = s;
  if (has_kernels(s)) padded.head_dim = padded.head_dim_v = flash_v3_width(s);
  FlopCount count = closed::forward_flops(s, tiles, rows, plan.block_kv);
  count.executed_matmul = closed::forward_flops(padded, tiles, rows, plan.block_kv).executed_matmul;
  return count;
}

constexpr PlanKey kKeys[] = {PlanKey::block_q, PlanKey::block_kv, PlanKey::cluster, PlanKey::order, PlanKey::stages};

}  // namespace

const Algorithm kFlashV3{
    .name = "flash_v3",
    .summary = "flash_v2 on Hopper: copies, products and softmax at one time",
    .reference = "FlashAttention-3, arXiv 2407.08608, Algorithm 2",
    .formula = "2 ceil(Nq/Br) Nk d e + 2 Nq d e + 4 Nq",
    .pass = Pass::forward,
    .plan_keys = kKeys,
    .walk = walk,
    .closed_form = closed_form,
    .flops = flops,
};

}  // namespace hbmscope
