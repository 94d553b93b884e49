#include "model/algorithms/all.hpp"
#include "model/algorithms/closed_form.hpp"
#include "model/algorithms/loops.hpp"

namespace hbmscope {
namespace {

// FlashAttention, Algorithm 4: key tiles outer, query tiles inner; dK_j and dV_j stay on chip, dQ_i goes through HBM at
// each visit. The released kernels read O on a row's first visit only, keep D = rowsum(dO * O) from then on, and hold
// dQ in fp32 between visits.
std::vector<KernelWalk> walk(const AttentionShape& s, const TilePlan& plan) {
  using namespace loops;
  const std::int64_t e = s.element_bytes();
  const bool paper = plan.variant == FlashV1Variant::paper;
  const Tiles queries(s.seqlen_q, plan.block_q);
  const Tiles keys(s.seqlen_kv, plan.block_kv);

  const auto initialise_dq = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta, queries.count(), s.num_heads);
    to.store({Tensor::dQ, at.batch_head, at.tile}, bytes(queries[at.tile].count(), s.head_dim, e));
    to.step();
  };
  const auto initialise_dk_dv = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta, keys.count(), s.num_heads);
    to.store({Tensor::dK, at.batch_head, at.tile}, bytes(keys[at.tile].count(), s.head_dim, e));
    to.store({Tensor::dV, at.batch_head, at.tile}, bytes(keys[at.tile].count(), s.head_dim_v, e));
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
      const Bytes statistic = bytes(q.count(), 1, kStatisticBytes);
      const Bytes output = bytes(q.count(), s.head_dim_v, e);
      to.load({Tensor::Q, at.batch_head, q.index}, bytes(q.count(), s.head_dim, e));
      to.load({Tensor::dO, at.batch_head, q.index}, output);
      if (paper) {
        to.load({Tensor::O, at.batch_head, q.index}, output);
        to.load({Tensor::dQ, at.batch_head, q.index}, bytes(q.count(), s.head_dim, e));
        to.load({Tensor::l, at.batch_head, q.index}, statistic);
        to.load({Tensor::m, at.batch_head, q.index}, statistic);
        to.store({Tensor::dQ, at.batch_head, q.index}, bytes(q.count(), s.head_dim, e));
      } else {
        const bool first_visit = !meets(q, c.index - 1);
        const bool last_visit = !meets(q, c.index + 1);
        to.load({Tensor::LSE, at.batch_head, q.index}, statistic);
        if (first_visit) {
          to.load({Tensor::O, at.batch_head, q.index}, output);
          to.store({Tensor::D, at.batch_head, q.index}, statistic);
        } else {
          to.load({Tensor::D, at.batch_head, q.index}, statistic);
          to.load({Tensor::dQtmp, at.batch_head, q.index}, bytes(q.count(), s.head_dim, kAccumulatorBytes));
        }
        if (last_visit) {
          to.store({Tensor::dQ, at.batch_head, q.index}, bytes(q.count(), s.head_dim, e));
        } else {
          to.store({Tensor::dQtmp, at.batch_head, q.index}, bytes(q.count(), s.head_dim, kAccumulatorBytes));
        }
      }
      to.step();
    }
    to.store({Tensor::dK, at.batch_head, c.index}, bytes(c.count(), s.head_dim, e));
    to.store({Tensor::dV, at.batch_head, c.index}, bytes(c.count(), s.head_dim_v, e));
    to.step();
  };

  KernelWalk kernel{"fused", s.batch * s.num_heads, keys.count(), fused, 1, heads_per_kv(s, 1), queries.count()};
  kernel.smem_bytes =
      (2 * plan.block_q + 2 * plan.block_kv) * (s.head_dim + s.head_dim_v) * e;  // Q, dQ, O, dO and K, V, dK, dV
  kernel.register_bytes = register_bytes(plan.block_q, plan.block_kv, s.head_dim_v);
  std::vector<KernelWalk> kernels;
  if (paper) {
    kernels.push_back({"init_dq", s.batch * s.num_heads * queries.count(), 1, initialise_dq, queries.count()});
    kernels.push_back({"init_dkv", s.batch * s.num_heads * keys.count(), 1, initialise_dk_dv, keys.count()});
  }
  kernels.push_back(kernel);
  return kernels;
}

// K, V, dK and dV once; Q, O, dO, dQ and the statistics once a visit.
std::vector<StageTraffic> closed_form(const AttentionShape& shape, const TilePlan& plan) {
  const closed::Sizes n(shape);
  const closed::TileSums tile = closed::tile_sums(shape, plan.block_q, plan.block_kv);
  const Count visits = tile.row_passes, BH = n.B * n.H;
  Traffic t(Boundary::sm_l2);
  t.read(Tensor::K, BH * n.Nk * n.d * n.e);
  t.read(Tensor::V, BH * n.Nk * n.dv * n.e);
  t.write(Tensor::dK, BH * n.Nk * n.d * n.e);
  t.write(Tensor::dV, BH * n.Nk * n.dv * n.e);
  t.read(Tensor::Q, n.H * visits * n.d * n.e);
  t.read(Tensor::dO, n.H * visits * n.dv * n.e);
  if (plan.variant == FlashV1Variant::released) {
    const Count between = visits - tile.live_rows;
    t.read(Tensor::O, n.H * tile.live_rows * n.dv * n.e);
    t.write(Tensor::D, n.H * tile.live_rows * n.stat);
    t.read(Tensor::D, n.H * between * n.stat);
    t.read(Tensor::dQtmp, n.H * between * n.d * n.acc);
    t.write(Tensor::dQtmp, n.H * between * n.d * n.acc);
    t.write(Tensor::dQ, n.H * tile.live_rows * n.d * n.e);
    t.read(Tensor::LSE, n.H * visits * n.stat);
    return {{"fused", t}};
  }
  t.read(Tensor::O, n.H * visits * n.dv * n.e);
  t.read(Tensor::dQ, n.H * visits * n.d * n.e);
  t.write(Tensor::dQ, n.H * visits * n.d * n.e);
  t.read(Tensor::l, n.H * visits * n.stat);
  t.read(Tensor::m, n.H * visits * n.stat);
  Traffic init_dq(Boundary::sm_l2);
  init_dq.write(Tensor::dQ, BH * n.Nq * n.d * n.e);
  Traffic init_dkv(Boundary::sm_l2);
  init_dkv.write(Tensor::dK, BH * n.Nk * n.d * n.e);
  init_dkv.write(Tensor::dV, BH * n.Nk * n.dv * n.e);
  return {{"init_dq", init_dq}, {"init_dkv", init_dkv}, {"fused", t}};
}

FlopCount flops(const AttentionShape& s, const TilePlan& plan) {
  const closed::Sizes n(s);
  const Count tiles = n.H * closed::tile_sums(s, plan.block_q, plan.block_kv).tiles;
  return closed::recomputing_backward_flops(s, tiles, plan.block_q, plan.block_kv);
}

constexpr PlanKey kKeys[] = {PlanKey::block_q, PlanKey::block_kv, PlanKey::variant};

}  // namespace

const Algorithm kFlashV1Bwd{
    .name = "flash_v1_bwd",
    .summary = "KV outer, dQ re-read and re-written",
    .reference =
        "FlashAttention, arXiv 2205.14135, Algorithm 4; variant released: the first public CUDA kernels of May 2022",
    .formula = "6 Nk d e + T_c (5 Nq d e + 8 Nq) + Nq d e, T_c = ceil(Nk/Bc)",
    .pass = Pass::backward,
    .plan_keys = kKeys,
    .walk = walk,
    .closed_form = closed_form,
    .flops = flops,
};

}  // namespace hbmscope
