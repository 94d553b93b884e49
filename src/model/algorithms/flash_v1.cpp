#include "model/algorithms/all.hpp"
#include "model/algorithms/closed_form.hpp"
#include "model/algorithms/loops.hpp"

namespace hbmscope {
namespace {

// FlashAttention, Algorithm 1: one CTA a head walks the key tiles (outer) and, for each, all query tiles (inner). Every
// visit re-reads and re-writes the query tile's O, l and m. The released kernels keep one LSE and an fp32 Otmp between
// visits instead, and initialise nothing.
std::vector<KernelWalk> walk(const AttentionShape& s, const TilePlan& plan) {
  using namespace loops;
  const std::int64_t e = s.element_bytes();
  const bool paper = plan.variant == FlashV1Variant::paper;
  const Tiles queries(s.seqlen_q, plan.block_q);
  const Tiles keys(s.seqlen_kv, plan.block_kv);

  const auto initialise = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta, queries.count(), s.num_heads);
    const Rows q = queries[at.tile];
    to.store({Tensor::O, at.batch_head, q.index}, bytes(q.count(), s.head_dim_v, e));
    to.store({Tensor::l, at.batch_head, q.index}, bytes(q.count(), 1, kStatisticBytes));
    to.store({Tensor::m, at.batch_head, q.index}, bytes(q.count(), 1, kStatisticBytes));
    to.step();
  };
  const auto fused = [=](std::int64_t cta, std::int64_t pass, TileListener& to) {
    const Place at(cta, 1, s.num_heads);
    const std::int64_t kv = kv_batch_head(s, at.batch, at.head);
    const std::int64_t valid = s.keys_of(at.batch);
    const Rows c = keys[pass];
    const auto meets = [&](const Rows& q, std::int64_t j) {
      return j >= 0 && j < keys.count() && live(s, q.first, q.last, keys[j], valid);
    };
    to.load({Tensor::K, kv, c.index}, bytes(c.count(), s.head_dim, e));
    to.load({Tensor::V, kv, c.index}, bytes(c.count(), s.head_dim_v, e));
    for (const Rows q : queries) {
      if (!meets(q, c.index)) continue;
      to.load({Tensor::Q, at.batch_head, q.index}, bytes(q.count(), s.head_dim, e));
      const Bytes statistic = bytes(q.count(), 1, kStatisticBytes);
      if (paper) {
        to.load({Tensor::O, at.batch_head, q.index}, bytes(q.count(), s.head_dim_v, e));
        to.load({Tensor::l, at.batch_head, q.index}, statistic);
        to.load({Tensor::m, at.batch_head, q.index}, statistic);
        to.store({Tensor::O, at.batch_head, q.index}, bytes(q.count(), s.head_dim_v, e));
        to.store({Tensor::l, at.batch_head, q.index}, statistic);
        to.store({Tensor::m, at.batch_head, q.index}, statistic);
      } else {
        // A band is seen without a gap, so the first visit is the one whose left neighbour is dead, the last the one
        // whose right neighbour is.
        const bool first_visit = !meets(q, c.index - 1);
        const bool last_visit = !meets(q, c.index + 1);
        if (!first_visit) {
          to.load({Tensor::Otmp, at.batch_head, q.index}, bytes(q.count(), s.head_dim_v, kAccumulatorBytes));
          to.load({Tensor::LSE, at.batch_head, q.index}, statistic);
        }
        if (last_visit) {
          to.store({Tensor::O, at.batch_head, q.index}, bytes(q.count(), s.head_dim_v, e));
        } else {
          to.store({Tensor::Otmp, at.batch_head, q.index}, bytes(q.count(), s.head_dim_v, kAccumulatorBytes));
        }
        to.store({Tensor::LSE, at.batch_head, q.index}, statistic);
      }
      to.step();
    }
    to.step();
  };

  KernelWalk kernel{"fused", s.batch * s.num_heads, keys.count(), fused, 1, heads_per_kv(s, 1), queries.count()};
  kernel.smem_bytes = (plan.block_q + plan.block_kv) * (s.head_dim + s.head_dim_v) * e;  // Q_i and O_i, K_j and V_j
  kernel.register_bytes = register_bytes(plan.block_q, plan.block_kv, s.head_dim_v);
  std::vector<KernelWalk> kernels;
  if (paper)
    kernels.push_back(
        {"init", s.batch * s.num_heads * queries.count(), 1, initialise, queries.count(), heads_per_kv(s, 1)});
  kernels.push_back(kernel);
  return kernels;
}

// K and V once; Q, O and the statistics once a visit: with T_c = ceil(Nk/Bc) passes over a full mask, about 3 N d T_c
// elements, the paper's Theta(N^2 d^2 / M).
std::vector<StageTraffic> closed_form(const AttentionShape& shape, const TilePlan& plan) {
  const closed::Sizes n(shape);
  const closed::TileSums tile = closed::tile_sums(shape, plan.block_q, plan.block_kv);
  const Count visits = tile.row_passes;
  Traffic t(Boundary::sm_l2);
  t.read(Tensor::K, n.B * n.H * n.Nk * n.d * n.e);
  t.read(Tensor::V, n.B * n.H * n.Nk * n.dv * n.e);
  t.read(Tensor::Q, n.H * visits * n.d * n.e);
  if (plan.variant == FlashV1Variant::released) {
    const Count between = visits - tile.live_rows;  // visits that are not a row's last; as many are not its first
    t.read(Tensor::Otmp, n.H * between * n.dv * n.acc);
    t.write(Tensor::Otmp, n.H * between * n.dv * n.acc);
    t.write(Tensor::O, n.H * tile.live_rows * n.dv * n.e);
    t.read(Tensor::LSE, n.H * between * n.stat);
    t.write(Tensor::LSE, n.H * visits * n.stat);
    return {{"fused", t}};
  }
  t.read(Tensor::O, n.H * visits * n.dv * n.e);
  t.write(Tensor::O, n.H * visits * n.dv * n.e);
  for (const Tensor statistic : {Tensor::l, Tensor::m}) {
    t.read(statistic, n.H * visits * n.stat);
    t.write(statistic, n.H * visits * n.stat);
  }
  Traffic init(Boundary::sm_l2);
  init.write(Tensor::O, n.B * n.H * n.Nq * n.dv * n.e);
  init.write(Tensor::l, n.B * n.H * n.Nq * n.stat);
  init.write(Tensor::m, n.B * n.H * n.Nq * n.stat);
  return {{"init", init}, {"fused", t}};
}

FlopCount flops(const AttentionShape& s, const TilePlan& plan) {
  const Count tiles = Count(s.num_heads) * closed::tile_sums(s, plan.block_q, plan.block_kv).tiles;
  return closed::forward_flops(s, tiles, plan.block_q, plan.block_kv);
}

constexpr PlanKey kKeys[] = {PlanKey::block_q, PlanKey::block_kv, PlanKey::variant};

}  // namespace

const Algorithm kFlashV1{
    .name = "flash_v1",
    .summary = "KV outer, O re-read and re-written",
    .reference =
        "FlashAttention, arXiv 2205.14135, Algorithm 1; variant released: the first public CUDA kernels of May 2022",
    .formula = "2 Nk d e + T_c (3 Nq d e + 16 Nq) + Nq d e + 8 Nq, T_c = ceil(Nk/Bc)",
    .pass = Pass::forward,
    .plan_keys = kKeys,
    .walk = walk,
    .closed_form = closed_form,
    .flops = flops,
};

}  // namespace hbmscope
