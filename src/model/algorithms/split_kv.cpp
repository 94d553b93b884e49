#include "model/algorithms/all.hpp"
#include "model/algorithms/closed_form.hpp"
#include "model/algorithms/flash_v2.hpp"
#include "model/algorithms/loops.hpp"

namespace hbmscope {
namespace {

// Flash-Decoding: the key tiles are dealt out to num_kv_splits CTAs, each of which writes an fp32 partial output and
// its log-sum-exp, an empty split too; a second kernel reads all partials of a query tile and writes O.
std::vector<KernelWalk> walk(const AttentionShape& s, const TilePlan& plan) {
  using namespace loops;
  const std::int64_t pack = pack_of(s, plan, true);
  if (plan.num_kv_splits == 1) return walk_flash_v2(s, plan, pack);
  const std::int64_t e = s.element_bytes();
  const std::int64_t splits = plan.num_kv_splits;
  const std::int64_t heads = s.num_heads / pack;
  const Tiles queries(s.seqlen_q * pack, plan.block_q);
  const Tiles keys(s.seqlen_kv, plan.block_kv);
  const std::int64_t tiles_per_split = Tiles(keys.count(), splits).count();

  const auto partial = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta / splits, queries.count(), heads);
    const std::int64_t split = cta % splits;
    const std::int64_t kv = kv_batch_head(s, at.batch, at.head * pack);
    const std::int64_t valid = s.keys_of(at.batch);
    const Rows q = queries[at.tile];
    bool q_loaded = false;
    for (std::int64_t j = split * tiles_per_split; j < std::min((split + 1) * tiles_per_split, keys.count()); ++j) {
      const Rows c = keys[j];
      if (!live(s, q.first / pack, q.last / pack, c, valid)) continue;
      if (!q_loaded) to.load({Tensor::Q, at.batch_head, q.index}, bytes(q.count(), s.head_dim, e));
      q_loaded = true;
      const std::int64_t rows = std::min(c.last, valid - 1) - c.first + 1;
      to.load({Tensor::K, kv, j}, bytes(rows, s.head_dim, e));
      to.load({Tensor::V, kv, j}, bytes(rows, s.head_dim_v, e));
      to.step();
    }
    to.store({Tensor::Oacc, at.batch_head, q.index, split}, bytes(q.count(), s.head_dim_v, kAccumulatorBytes));
    to.store({Tensor::LSEacc, at.batch_head, q.index, split}, bytes(q.count(), 1, kStatisticBytes));
    to.step();
  };
  const auto combine = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta, queries.count(), heads);
    const Rows q = queries[at.tile];
    for (std::int64_t split = 0; split < splits; ++split) {
      to.load({Tensor::Oacc, at.batch_head, q.index, split}, bytes(q.count(), s.head_dim_v, kAccumulatorBytes));
      to.load({Tensor::LSEacc, at.batch_head, q.index, split}, bytes(q.count(), 1, kStatisticBytes));
    }
    to.store({Tensor::O, at.batch_head, q.index}, bytes(q.count(), s.head_dim_v, e));
    to.store({Tensor::LSE, at.batch_head, q.index}, bytes(q.count(), 1, kStatisticBytes));
    to.step();
  };

  KernelWalk first{"fused",
                   s.batch * heads * queries.count() * splits,
                   1,
                   partial,
                   queries.count() * splits,
                   heads_per_kv(s, pack),
                   tiles_per_split};
  first.shares_streams = true;
  first.younger_stall = younger_stall(s, plan);
  first.smem_bytes = (plan.block_q * s.head_dim + plan.stages * plan.block_kv * (s.head_dim + s.head_dim_v)) * e;
  first.register_bytes = register_bytes(plan.block_q, plan.block_kv, s.head_dim_v);
  KernelWalk second{"combine", s.batch * heads * queries.count(), 1, combine, queries.count(), heads_per_kv(s, pack),
                    splits};
  second.register_bytes = register_bytes(plan.block_q, 0, s.head_dim_v);
  return {first, second};
}

// As flash_v2, but Q once for each split that meets a key, and fp32 partials of every split written and read: over one
// pass this adds 2 S (d + 1) 4 bytes a query row and Q's extra reads.
std::vector<StageTraffic> closed_form(const AttentionShape& shape, const TilePlan& plan) {
  const std::int64_t pack = pack_of(shape, plan, true);
  if (plan.num_kv_splits == 1) return close_flash_v2(shape, plan, pack);
  const closed::Sizes n(shape);
  const Count heads(shape.num_heads / pack), splits(plan.num_kv_splits);
  const Count tiles_per_split = closed::ceil_div(closed::ceil_div(n.Nk, Count(plan.block_kv)), splits);
  const closed::TileSums tile = closed::tile_sums(shape, plan.block_q, plan.block_kv, pack, tiles_per_split.value());
  const Count rows = n.B * n.H * n.Nq;

  Traffic first(Boundary::sm_l2);
  first.read(Tensor::Q, heads * tile.split_rows * n.d * n.e);
  first.read(Tensor::K, heads * tile.key_passes * n.d * n.e);
  first.read(Tensor::V, heads * tile.key_passes * n.dv * n.e);
  first.write(Tensor::Oacc, splits * rows * n.dv * n.acc);
  first.write(Tensor::LSEacc, splits * rows * n.stat);

  Traffic second(Boundary::sm_l2);
  second.read(Tensor::Oacc, splits * rows * n.dv * n.acc);
  second.read(Tensor::LSEacc, splits * rows * n.stat);
  second.write(Tensor::O, rows * n.dv * n.e);
  second.write(Tensor::LSE, rows * n.stat);
  return {{"fused", first}, {"combine", second}};
}

FlopCount flops(const AttentionShape& s, const TilePlan& plan) {
  const std::int64_t pack = pack_of(s, plan, true);
  const Count tiles = Count(s.num_heads / pack) * closed::tile_sums(s, plan.block_q, plan.block_kv, pack).tiles;
  return closed::forward_flops(s, tiles, plan.block_q, plan.block_kv);
}

constexpr PlanKey kKeys[] = {PlanKey::block_q,  PlanKey::block_kv, PlanKey::num_kv_splits,
                             PlanKey::pack_gqa, PlanKey::order,    PlanKey::stages};

}  // namespace

const Algorithm kSplitKv{
    .name = "split_kv",
    .summary = "flash_v2 over key splits, then a combine kernel",
    .reference =
        "Flash-Decoding, Dao, Haziza, Massa, Sizov, October 2023; flash_fwd_splitkv_kernel of the FlashAttention-2 "
        "release",
    .formula = "2 ceil(Nq/Br) Nk d e + (S + 1) Nq d e + 8 S Nq (d + 1) + 4 Nq",
    .pass = Pass::forward,
    .plan_keys = kKeys,
    .walk = walk,
    .closed_form = closed_form,
    .flops = flops,
};

}  // namespace hbmscope
