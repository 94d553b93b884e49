#include <tuple>
#include <utility>

#include "model/algorithms/all.hpp"
#include "model/algorithms/closed_form.hpp"
#include "model/algorithms/loops.hpp"

namespace hbmscope {
namespace {

std::int64_t stored_scores(const AttentionShape& s, const TilePlan& plan) {
  return plan.fp32_scores ? 4 : s.element_bytes();
}

// Three kernels and what frameworks add between them; S and P pass through HBM whole, masked or not. Without gemm_tile
// a kernel is one tile that takes each operand once, and a kv head's K and V serve its whole group; with it, each tile
// of S or O fetches its own operands.
std::vector<KernelWalk> walk(const AttentionShape& s, const TilePlan& plan) {
  using namespace loops;
  const std::int64_t e = s.element_bytes();
  const std::int64_t score_bytes = stored_scores(s, plan), prob_bytes = e;
  const bool whole = !plan.gemm_tile;
  const std::int64_t bm = whole ? s.seqlen_q : (*plan.gemm_tile)[0];
  const std::int64_t bn = whole ? s.seqlen_kv : (*plan.gemm_tile)[1];
  const bool repeat = plan.repeat_kv && s.group_size() > 1;
  const Tensor K = repeat ? Tensor::Kx : Tensor::K;
  const Tensor V = repeat ? Tensor::Vx : Tensor::V;
  const Tiles rows(s.seqlen_q, bm), keys(s.seqlen_kv, bn), columns(s.head_dim_v, whole ? s.head_dim_v : bn);
  const std::int64_t heads = s.batch * s.num_heads;
  const std::int64_t panel = std::clamp<std::int64_t>(kPanelBytes / (bn * s.head_dim * e), 1, keys.count());
  const auto kv_of = [=](const Place& at) { return repeat ? at.batch_head : kv_batch_head(s, at.batch, at.head); };
  const auto first_of_group = [=](const Place& at) { return repeat || at.head % s.group_size() == 0; };

  const auto repeat_kv = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta, keys.count(), s.num_kv_heads);
    const Rows c = keys[at.tile];
    for (const auto& [from, copy, width] :
         {std::tuple{Tensor::K, Tensor::Kx, s.head_dim}, std::tuple{Tensor::V, Tensor::Vx, s.head_dim_v}}) {
      to.load({from, at.batch_head, c.index}, bytes(c.count(), width, e));
      for (std::int64_t g = 0; g < s.group_size(); ++g)
        to.store({copy, at.batch_head * s.group_size() + g, c.index}, bytes(c.count(), width, e));
    }
    to.step();
  };
  const auto qk = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta, rows.count() * keys.count(), s.num_heads);
    const PanelPlace tile(at.tile, rows.count(), keys.count(), panel);
    const Rows q = rows[tile.row], c = keys[tile.column];
    to.load({Tensor::Q, at.batch_head, q.index}, bytes(q.count(), s.head_dim, e));
    if (!whole || first_of_group(at)) to.load({K, kv_of(at), c.index}, bytes(c.count(), s.head_dim, e));
    to.store({Tensor::S, at.batch_head, q.index, c.index}, bytes(q.count(), c.count(), score_bytes));
    to.step();
  };
  // Reads a tile row of `from` `reads` times, then writes it to `into`: the shape of every elementwise and row-wise
  // kernel.
  const auto row_kernel = [=](Tensor from, Tensor into, std::int64_t reads, std::int64_t from_bytes,
                              std::int64_t into_bytes, bool keep_mask) {
    return [=](std::int64_t cta, std::int64_t, TileListener& to) {
      const Place at(cta, rows.count(), s.num_heads);
      const Rows q = rows[at.tile];
      for (std::int64_t read = 0; read < reads; ++read) {
        for (const Rows c : keys) {
          to.load({from, at.batch_head, q.index, c.index}, bytes(q.count(), c.count(), from_bytes));
          to.step();
        }
      }
      for (const Rows c : keys) {
        to.store({into, at.batch_head, q.index, c.index}, bytes(q.count(), c.count(), into_bytes));
        if (keep_mask) to.store({Tensor::dmask, at.batch_head, q.index, c.index}, bytes(q.count(), c.count(), 1));
        to.step();
      }
    };
  };
  const Tensor probabilities = plan.dropout ? Tensor::Pd : Tensor::P;
  const auto pv = [=](std::int64_t cta, std::int64_t, TileListener& to) {
    const Place at(cta, rows.count() * columns.count(), s.num_heads);
    const Rows q = rows[at.tile / columns.count()], x = columns[at.tile % columns.count()];
    for (const Rows c : keys) {
      to.load({probabilities, at.batch_head, q.index, c.index}, bytes(q.count(), c.count(), prob_bytes));
      if (!whole || first_of_group(at)) to.load({V, kv_of(at), c.index, x.index}, bytes(c.count(), x.count(), e));
      to.step();
    }
    to.store({Tensor::O, at.batch_head, q.index, x.index}, bytes(q.count(), x.count(), e));
    to.step();
  };

  const std::int64_t alike =
      whole    ? 0
      : repeat ? 1
               : s.group_size();  // a whole-head kernel reads K and V with the first head of a group only
  const std::int64_t gemm_smem = whole ? 0 : 2 * (bm + bn) * 64 * e;  // two stages of 64-deep operand tiles
  const std::int64_t gemm_registers = whole ? 0 : register_bytes(bm, bn, 0);
  std::vector<KernelWalk> kernels;
  if (repeat) kernels.push_back({"repeat_kv", s.batch * s.num_kv_heads * keys.count(), 1, repeat_kv, keys.count()});
  kernels.push_back({"qk", heads * rows.count() * keys.count(), 1, qk, rows.count() * keys.count(), alike, 1, false, 1,
                     gemm_smem, gemm_registers});
  // A CTA of a row kernel holds one row, so a walk over a tile row stands for as many CTAs as the tile has rows.
  const auto by_rows = [&](std::string_view stage, const auto& body) {
    kernels.push_back({stage, heads * rows.count(), 1, body, rows.count(), alike, keys.count(), false, bm});
  };
  if (plan.scale_pass) by_rows("scale", row_kernel(Tensor::S, Tensor::S, 1, score_bytes, score_bytes, false));
  if (plan.mask_pass) by_rows("mask", row_kernel(Tensor::S, Tensor::S, 1, score_bytes, score_bytes, false));
  by_rows("softmax", row_kernel(Tensor::S, Tensor::P, plan.softmax_reads, score_bytes, prob_bytes, false));
  if (plan.dropout) by_rows("dropout", row_kernel(Tensor::P, Tensor::Pd, 1, prob_bytes, prob_bytes, true));
  kernels.push_back({"pv", heads * rows.count() * columns.count(), 1, pv, rows.count() * columns.count(), alike,
                     keys.count(), false, 1, gemm_smem, gemm_registers});
  return kernels;
}

// 4 N^2 e + 4 N d e with every operand once a kernel (FlashAttention, Algorithm 0); GEMM tiles bm x bn multiply Q by
// ceil(Nk/bn), K and V by ceil(Nq/bm) and P by ceil(d_v/bn).
std::vector<StageTraffic> closed_form(const AttentionShape& shape, const TilePlan& plan) {
  const closed::Sizes n(shape);
  const Count BH = n.B * n.H, BHkv = n.B * n.Hkv, one(1);
  const Bytes S = BH * n.Nq * n.Nk * Bytes(stored_scores(shape, plan));
  const Bytes P = BH * n.Nq * n.Nk * n.e;
  const bool repeat = plan.repeat_kv && shape.group_size() > 1;
  const Tensor K = repeat ? Tensor::Kx : Tensor::K, V = repeat ? Tensor::Vx : Tensor::V;

  Count q_times = one, p_times = one, kv_heads = repeat ? BH : BHkv;
  if (plan.gemm_tile) {
    const Count bm((*plan.gemm_tile)[0]), bn((*plan.gemm_tile)[1]);
    q_times = closed::ceil_div(n.Nk, bn);
    p_times = closed::ceil_div(n.dv, bn);
    kv_heads = BH * closed::ceil_div(n.Nq, bm);
  }
  std::vector<StageTraffic> stages;
  const auto stage = [&](std::string_view name) -> Traffic& {
    return stages.emplace_back(StageTraffic{name, Traffic(Boundary::sm_l2)}).traffic;
  };
  if (repeat) {
    Traffic& t = stage("repeat_kv");
    t.read(Tensor::K, BHkv * n.Nk * n.d * n.e);
    t.read(Tensor::V, BHkv * n.Nk * n.dv * n.e);
    t.write(Tensor::Kx, BH * n.Nk * n.d * n.e);
    t.write(Tensor::Vx, BH * n.Nk * n.dv * n.e);
  }
  Traffic& qk = stage("qk");
  qk.read(Tensor::Q, q_times * (BH * n.Nq * n.d * n.e));
  qk.read(K, kv_heads * n.Nk * n.d * n.e);
  qk.write(Tensor::S, S);
  for (const auto& [wanted, name] : {std::pair{plan.scale_pass, "scale"}, std::pair{plan.mask_pass, "mask"}}) {
    if (!wanted) continue;
    Traffic& t = stage(name);
    t.read(Tensor::S, S);
    t.write(Tensor::S, S);
  }
  Traffic& softmax = stage("softmax");
  softmax.read(Tensor::S, Count(plan.softmax_reads) * S);
  softmax.write(Tensor::P, P);
  if (plan.dropout) {
    Traffic& t = stage("dropout");
    t.read(Tensor::P, P);
    t.write(Tensor::Pd, P);
    t.write(Tensor::dmask, BH * n.Nq * n.Nk * Bytes(1));
  }
  Traffic& pv = stage("pv");
  pv.read(plan.dropout ? Tensor::Pd : Tensor::P, p_times * P);
  pv.read(V, kv_heads * n.Nk * n.dv * n.e);
  pv.write(Tensor::O, BH * n.Nq * n.dv * n.e);
  return stages;
}

FlopCount flops(const AttentionShape& s, const TilePlan& plan) {
  const closed::Sizes n(s);
  const Count bm = plan.gemm_tile ? Count((*plan.gemm_tile)[0]) : n.Nq;
  const Count bn = plan.gemm_tile ? Count((*plan.gemm_tile)[1]) : n.Nk;
  const Count tiles = n.B * n.H * closed::ceil_div(n.Nq, bm) * closed::ceil_div(n.Nk, bn);
  return closed::forward_flops(s, tiles, bm.value(), bn.value());
}

constexpr PlanKey kKeys[] = {PlanKey::gemm_tile, PlanKey::softmax_reads, PlanKey::scale_pass, PlanKey::mask_pass,
                             PlanKey::dropout,   PlanKey::fp32_scores,   PlanKey::repeat_kv};

}  // namespace

const Algorithm kNaive{
    .name = "naive",
    .summary = "S and P in HBM, 3 kernels",
    .reference =
        "FlashAttention, arXiv 2205.14135, Algorithm 0; softmax passes as in Milakov and Gimelshein, arXiv 1805.02867",
    .formula = "4 N^2 e + 4 N d e",
    .pass = Pass::forward,
    .plan_keys = kKeys,
    .walk = walk,
    .closed_form = closed_form,
    .flops = flops,
};

}  // namespace hbmscope
