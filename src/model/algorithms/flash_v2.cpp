#include "model/algorithms/flash_v2.hpp"

#include <algorithm>

#include "model/algorithms/all.hpp"
#include "model/algorithms/closed_form.hpp"
#include "model/algorithms/loops.hpp"

namespace hbmscope {

// The loop nest of FlashAttention-2, Algorithm 1: a CTA owns a query tile, keeps O, l and m on chip, and streams K and
// V past it. A cluster of CTAs walks together and receives each K and V tile from one multicast.
std::vector<KernelWalk> walk_flash_v2(const AttentionShape& s, const TilePlan& plan, std::int64_t pack) {
  using namespace loops;
  const std::int64_t e = s.element_bytes();
  const std::int64_t heads = s.num_heads / pack;
  const Tiles queries(s.seqlen_q * pack, plan.block_q);
  const Tiles keys(s.seqlen_kv, plan.block_kv);
  const std::int64_t cluster = cluster_of(plan), clusters = Tiles(queries.count(), cluster).count();

  const auto walk = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta, clusters, heads);
    const std::int64_t kv = kv_batch_head(s, at.batch, at.head * pack);
    const std::int64_t valid = s.keys_of(at.batch);
    const Rows mine = Tiles(queries.count(), cluster)[at.tile];  // the query tiles of this cluster
    const auto meets = [&](const Rows& q, const Rows& c) { return live(s, q.first / pack, q.last / pack, c, valid); };
    const Rows all_keys{0, 0, s.seqlen_kv - 1};

    for (std::int64_t i = mine.first; i <= mine.last; ++i) {
      if (meets(queries[i], all_keys)) to.load({Tensor::Q, at.batch_head, i}, bytes(queries[i].count(), s.head_dim, e));
    }
    for (const Rows c : keys) {
      bool wanted = false;
      for (std::int64_t i = mine.first; i <= mine.last && !wanted; ++i) wanted = meets(queries[i], c);
      if (!wanted) continue;
      const std::int64_t rows = std::min(c.last, valid - 1) - c.first + 1;
      to.load({Tensor::K, kv, c.index}, bytes(rows, s.head_dim, e));
      to.load({Tensor::V, kv, c.index}, bytes(rows, s.head_dim_v, e));
      to.step();
    }
    for (std::int64_t i = mine.first; i <= mine.last; ++i) {
      to.store({Tensor::O, at.batch_head, i}, bytes(queries[i].count(), s.head_dim_v, e));
      to.store({Tensor::LSE, at.batch_head, i}, bytes(queries[i].count(), 1, kStatisticBytes));
    }
    to.step();
  };
  KernelWalk kernel{"fused", s.batch * heads * clusters, 1, walk, clusters, heads_per_kv(s, pack), keys.count()};
  kernel.shares_streams = true;
  kernel.younger_stall = younger_stall(s, plan);
  kernel.cluster = cluster;
  kernel.smem_bytes = (plan.block_q * s.head_dim + plan.stages * plan.block_kv * (s.head_dim + s.head_dim_v)) * e;
  kernel.register_bytes = register_bytes(plan.block_q, plan.block_kv, s.head_dim_v);
  return {kernel};
}

double younger_stall(const AttentionShape& shape, const TilePlan& plan) {
  const std::int64_t width = std::max(shape.head_dim, shape.head_dim_v);
  if (plan.stages == 1) return width <= 128 ? 0 : 0.104;
  return width <= 64 ? 0.37 : 0.245;
}

// Q once, O and LSE once; K and V once for each query tile (each cluster of them) that meets their tile: 2 ceil(Nq/Br)
// Nk d e + 2 Nq d e + 4 Nq without a mask. A cluster of c tiles meets what one tile of c Br rows meets.
std::vector<StageTraffic> close_flash_v2(const AttentionShape& shape, const TilePlan& plan, std::int64_t pack) {
  const closed::Sizes n(shape);
  const Count heads(shape.num_heads / pack);
  const closed::TileSums tile = closed::tile_sums(shape, plan.block_q, plan.block_kv, pack);
  const std::int64_t cluster = cluster_of(plan);
  const Count key_passes =
      cluster == 1 ? tile.key_passes : closed::tile_sums(shape, plan.block_q * cluster, plan.block_kv, pack).key_passes;
  Traffic t(Boundary::sm_l2);
  t.read(Tensor::Q, heads * tile.live_rows * n.d * n.e);
  t.read(Tensor::K, heads * key_passes * n.d * n.e);
  t.read(Tensor::V, heads * key_passes * n.dv * n.e);
  t.write(Tensor::O, n.B * n.H * n.Nq * n.dv * n.e);
  t.write(Tensor::LSE, n.B * n.H * n.Nq * n.stat);
  return {{"fused", t}};
}

namespace {

std::vector<KernelWalk> walk(const AttentionShape& s, const TilePlan& plan) {
  return walk_flash_v2(s, plan, pack_of(s, plan, false));
}

std::vector<StageTraffic> closed_form(const AttentionShape& s, const TilePlan& plan) {
  return close_flash_v2(s, plan, pack_of(s, plan, false));
}

FlopCount flops(const AttentionShape& s, const TilePlan& plan) {
  const std::int64_t pack = pack_of(s, plan, false);
  const Count tiles = Count(s.num_heads / pack) * closed::tile_sums(s, plan.block_q, plan.block_kv, pack).tiles;
  return closed::forward_flops(s, tiles, plan.block_q, plan.block_kv);
}

constexpr PlanKey kKeys[] = {PlanKey::block_q, PlanKey::block_kv, PlanKey::pack_gqa,
                             PlanKey::cluster, PlanKey::order,    PlanKey::stages};

}  // namespace

const Algorithm kFlashV2{
    .name = "flash_v2",
    .summary = "Q outer, O written once",
    .reference = "FlashAttention-2, arXiv 2307.08691, Algorithm 1; GQA packing and clusters as in FlashAttention-3",
    .formula = "2 ceil(Nq/Br) Nk d e + 2 Nq d e + 4 Nq",
    .pass = Pass::forward,
    .plan_keys = kKeys,
    .walk = walk,
    .closed_form = closed_form,
    .flops = flops,
};

}  // namespace hbmscope
