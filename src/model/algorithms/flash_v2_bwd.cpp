#include "model/algorithms/all.hpp"
#include "model/algorithms/closed_form.hpp"
#include "model/algorithms/loops.hpp"

namespace hbmscope {
namespace {

// FlashAttention-2, Algorithm 2, as released: a preprocess kernel writes D and zeroes dQacc; in the main kernel a CTA
// owns a key tile, keeps dK and dV on chip and adds its part of dQ atomically; dK and dV of a GQA group are summed, and
// dQacc is converted.
std::vector<KernelWalk> walk(const AttentionShape& s, const TilePlan& plan) {
  using namespace loops;
  const std::int64_t e = s.element_bytes();
  const bool grouped = s.group_size() > 1;
  const bool atomics_read = plan.atomics == Atomics::rmw;
  const Tiles queries(s.seqlen_q, plan.block_q);
  const Tiles keys(s.seqlen_kv, plan.block_kv);
  const std::int64_t heads = s.batch * s.num_heads;

  const auto preprocess = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta, queries.count(), s.num_heads);
    const Rows q = queries[at.tile];
    to.load({Tensor::O, at.batch_head, q.index}, bytes(q.count(), s.head_dim_v, e));
    to.load({Tensor::dO, at.batch_head, q.index}, bytes(q.count(), s.head_dim_v, e));
    to.store({Tensor::D, at.batch_head, q.index}, bytes(q.count(), 1, kStatisticBytes));
    to.store({Tensor::dQacc, at.batch_head, q.index}, bytes(q.count(), s.head_dim, kAccumulatorBytes));
    to.step();
  };
  const auto fused = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta, keys.count(), s.num_heads);
    const std::int64_t kv = kv_batch_head(s, at.batch, at.head);
    const std::int64_t valid = s.keys_of(at.batch);
    const Rows c = keys[at.tile];
    const std::int64_t loaded_rows = std::min(c.last, valid - 1) - c.first + 1;
    bool loaded = false;
    for (const Rows q : queries) {
      if (!live(s, q.first, q.last, c, valid)) continue;
      if (!loaded) {
        to.load({Tensor::K, kv, c.index}, bytes(loaded_rows, s.head_dim, e));
        to.load({Tensor::V, kv, c.index}, bytes(loaded_rows, s.head_dim_v, e));
        loaded = true;
      }
      to.load({Tensor::Q, at.batch_head, q.index}, bytes(q.count(), s.head_dim, e));
      to.load({Tensor::dO, at.batch_head, q.index}, bytes(q.count(), s.head_dim_v, e));
      to.load({Tensor::LSE, at.batch_head, q.index}, bytes(q.count(), 1, kStatisticBytes));
      to.load({Tensor::D, at.batch_head, q.index}, bytes(q.count(), 1, kStatisticBytes));
      if (atomics_read)
        to.load({Tensor::dQacc, at.batch_head, q.index}, bytes(q.count(), s.head_dim, kAccumulatorBytes));
      to.store({Tensor::dQacc, at.batch_head, q.index}, bytes(q.count(), s.head_dim, kAccumulatorBytes));
      to.step();
    }
    to.store({grouped ? Tensor::dKx : Tensor::dK, at.batch_head, c.index}, bytes(c.count(), s.head_dim, e));
    to.store({grouped ? Tensor::dVx : Tensor::dV, at.batch_head, c.index}, bytes(c.count(), s.head_dim_v, e));
    to.step();
  };
  const auto reduce = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta, keys.count(), s.num_kv_heads);
    const Rows c = keys[at.tile];
    for (std::int64_t g = 0; g < s.group_size(); ++g) {
      to.load({Tensor::dKx, at.batch_head * s.group_size() + g, c.index}, bytes(c.count(), s.head_dim, e));
      to.load({Tensor::dVx, at.batch_head * s.group_size() + g, c.index}, bytes(c.count(), s.head_dim_v, e));
    }
    to.store({Tensor::dK, at.batch_head, c.index}, bytes(c.count(), s.head_dim, e));
    to.store({Tensor::dV, at.batch_head, c.index}, bytes(c.count(), s.head_dim_v, e));
    to.step();
  };
  const auto convert = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta, queries.count(), s.num_heads);
    const Rows q = queries[at.tile];
    to.load({Tensor::dQacc, at.batch_head, q.index}, bytes(q.count(), s.head_dim, kAccumulatorBytes));
    to.store({Tensor::dQ, at.batch_head, q.index}, bytes(q.count(), s.head_dim, e));
    to.step();
  };

  KernelWalk main{"fused", heads * keys.count(), 1, fused, keys.count(), heads_per_kv(s, 1), queries.count()};
  main.shares_streams = true;
  main.smem_bytes =
      (plan.block_kv * (s.head_dim + s.head_dim_v) + plan.block_q * (s.head_dim + s.head_dim_v)) * e;  // K, V and Q, dO
  main.register_bytes = register_bytes(plan.block_kv, plan.block_q, s.head_dim + s.head_dim_v);        // dK and dV
  std::vector<KernelWalk> kernels{{"preprocess", heads * queries.count(), 1, preprocess, queries.count()}, main};
  if (grouped) kernels.push_back({"reduce", s.batch * s.num_kv_heads * keys.count(), 1, reduce, keys.count()});
  kernels.push_back({"convert", heads * queries.count(), 1, convert, queries.count()});
  return kernels;
}

// Q, dO, LSE and D once a visit, and a 4-byte atomic add of dQ; K and V once where any query sees them; dK and dV once.
std::vector<StageTraffic> closed_form(const AttentionShape& shape, const TilePlan& plan) {
  const closed::Sizes n(shape);
  const closed::TileSums tile = closed::tile_sums(shape, plan.block_q, plan.block_kv);
  const Count visits = n.H * tile.row_passes, keys = n.H * tile.touched_keys;
  const Count rows = n.B * n.H * n.Nq, kv_rows = n.B * n.Hkv * n.Nk, kv_rows_each = n.B * n.H * n.Nk;
  const bool grouped = shape.group_size() > 1;

  Traffic pre(Boundary::sm_l2);
  pre.read(Tensor::O, rows * n.dv * n.e);
  pre.read(Tensor::dO, rows * n.dv * n.e);
  pre.write(Tensor::D, rows * n.stat);
  pre.write(Tensor::dQacc, rows * n.d * n.acc);

  Traffic main(Boundary::sm_l2);
  main.read(Tensor::K, keys * n.d * n.e);
  main.read(Tensor::V, keys * n.dv * n.e);
  main.read(Tensor::Q, visits * n.d * n.e);
  main.read(Tensor::dO, visits * n.dv * n.e);
  main.read(Tensor::LSE, visits * n.stat);
  main.read(Tensor::D, visits * n.stat);
  if (plan.atomics == Atomics::rmw) main.read(Tensor::dQacc, visits * n.d * n.acc);
  main.write(Tensor::dQacc, visits * n.d * n.acc);
  main.write(grouped ? Tensor::dKx : Tensor::dK, kv_rows_each * n.d * n.e);
  main.write(grouped ? Tensor::dVx : Tensor::dV, kv_rows_each * n.dv * n.e);

  Traffic reduce(Boundary::sm_l2);
  reduce.read(Tensor::dKx, kv_rows_each * n.d * n.e);
  reduce.read(Tensor::dVx, kv_rows_each * n.dv * n.e);
  reduce.write(Tensor::dK, kv_rows * n.d * n.e);
  reduce.write(Tensor::dV, kv_rows * n.dv * n.e);

  Traffic convert(Boundary::sm_l2);
  convert.read(Tensor::dQacc, rows * n.d * n.acc);
  convert.write(Tensor::dQ, rows * n.d * n.e);
  std::vector<StageTraffic> stages{{"preprocess", pre}, {"fused", main}};
  if (grouped) stages.push_back({"reduce", reduce});
  stages.push_back({"convert", convert});
  return stages;
}

// Five products, one more than with P saved: S is computed again.
FlopCount flops(const AttentionShape& s, const TilePlan& plan) {
  const closed::Sizes n(s);
  const Count tiles = n.H * closed::tile_sums(s, plan.block_q, plan.block_kv).tiles;
  return closed::recomputing_backward_flops(s, tiles, plan.block_q, plan.block_kv);
}

constexpr PlanKey kKeys[] = {PlanKey::block_q, PlanKey::block_kv, PlanKey::atomics};

}  // namespace

const Algorithm kFlashV2Bwd{
    .name = "flash_v2_bwd",
    .summary = "KV outer in parallel, dQ by atomic adds",
    .reference =
        "FlashAttention-2, arXiv 2307.08691, Algorithm 2, with the released kernels' preprocess and convert steps",
    .formula = "T_c (2 Nq d e + 4 Nq d + 8 Nq) + 4 Nk d e + 3 Nq d e + 8 Nq d + 4 Nq, T_c = ceil(Nk/Bc)",
    .pass = Pass::backward,
    .plan_keys = kKeys,
    .walk = walk,
    .closed_form = closed_form,
    .flops = flops,
};

}  // namespace hbmscope
