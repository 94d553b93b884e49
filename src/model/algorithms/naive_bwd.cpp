#include "model/algorithms/all.hpp"
#include "model/algorithms/closed_form.hpp"
#include "model/algorithms/loops.hpp"

namespace hbmscope {
namespace {

// The standard backward pass with P saved (FlashAttention, Algorithm 3): five kernels, each taking every operand once.
// With GQA, dK and dV come out per query head and are then summed over their group.
std::vector<KernelWalk> walk(const AttentionShape& s, const TilePlan& plan) {
  using namespace loops;
  const std::int64_t e = s.element_bytes();
  const std::int64_t score_bytes = plan.fp32_scores ? 4 : e;
  const bool grouped = s.group_size() > 1;
  const std::int64_t heads = s.batch * s.num_heads;
  const Bytes q_rows = bytes(s.seqlen_q, s.head_dim, e), o_rows = bytes(s.seqlen_q, s.head_dim_v, e);
  const Bytes k_rows = bytes(s.seqlen_kv, s.head_dim, e), v_rows = bytes(s.seqlen_kv, s.head_dim_v, e);
  const Bytes square = bytes(s.seqlen_q, s.seqlen_kv, e), score_square = bytes(s.seqlen_q, s.seqlen_kv, score_bytes);

  /// Calls `body(head, kv head, whether it is the first head of its group)` for the one CTA a head.
  const auto per_head = [=](auto body) {
    return [=](std::int64_t cta, std::int64_t, TileListener& to) {
      const Place at(cta, 1, s.num_heads);
      body(at.batch_head, kv_batch_head(s, at.batch, at.head), at.head % s.group_size() == 0, to);
      to.step();
    };
  };
  const auto dv = per_head([=](std::int64_t h, std::int64_t, bool, TileListener& to) {  // dV = P^T dO
    to.load({Tensor::P, h, 0}, square);
    to.load({Tensor::dO, h, 0}, o_rows);
    to.store({grouped ? Tensor::dVx : Tensor::dV, h, 0}, v_rows);
  });
  const auto dp = per_head([=](std::int64_t h, std::int64_t kv, bool first, TileListener& to) {  // dP = dO V^T
    to.load({Tensor::dO, h, 0}, o_rows);
    if (first) to.load({Tensor::V, kv, 0}, v_rows);
    to.store({Tensor::dP, h, 0}, square);
  });
  const auto ds =
      per_head([=](std::int64_t h, std::int64_t, bool, TileListener& to) {  // dS = P * (dP - rowsum(P * dP))
        to.load({Tensor::P, h, 0}, square);
        to.load({Tensor::dP, h, 0}, square);
        to.store({Tensor::dS, h, 0}, score_square);
      });
  const auto dq = per_head([=](std::int64_t h, std::int64_t kv, bool first, TileListener& to) {  // dQ = dS K
    to.load({Tensor::dS, h, 0}, score_square);
    if (first) to.load({Tensor::K, kv, 0}, k_rows);
    to.store({Tensor::dQ, h, 0}, q_rows);
  });
  const auto dk = per_head([=](std::int64_t h, std::int64_t, bool, TileListener& to) {  // dK = dS^T Q
    to.load({Tensor::dS, h, 0}, score_square);
    to.load({Tensor::Q, h, 0}, q_rows);
    to.store({grouped ? Tensor::dKx : Tensor::dK, h, 0}, k_rows);
  });
  std::vector<KernelWalk> kernels{
      {"dv", heads, 1, dv}, {"dp", heads, 1, dp}, {"ds", heads, 1, ds}, {"dq", heads, 1, dq}, {"dk", heads, 1, dk}};
  if (grouped) {
    const auto reduce = [=](std::int64_t cta, std::int64_t, TileListener& to) {
      for (std::int64_t g = 0; g < s.group_size(); ++g) {
        to.load({Tensor::dKx, cta * s.group_size() + g, 0}, k_rows);
        to.load({Tensor::dVx, cta * s.group_size() + g, 0}, v_rows);
      }
      to.store({Tensor::dK, cta, 0}, k_rows);
      to.store({Tensor::dV, cta, 0}, v_rows);
      to.step();
    };
    kernels.push_back({"reduce", s.batch * s.num_kv_heads, 1, reduce});
  }
  return kernels;
}

// Seven N^2 passes (P twice, dP written and read, dS written and read twice) and eight N d ones.
std::vector<StageTraffic> closed_form(const AttentionShape& shape, const TilePlan& plan) {
  const closed::Sizes n(shape);
  const Count BH = n.B * n.H, BHkv = n.B * n.Hkv;
  const Bytes P = BH * n.Nq * n.Nk * n.e, dS = BH * n.Nq * n.Nk * (plan.fp32_scores ? Bytes(4) : n.e);
  const Bytes Q = BH * n.Nq * n.d * n.e, dO = BH * n.Nq * n.dv * n.e;
  const Bytes K = BHkv * n.Nk * n.d * n.e, V = BHkv * n.Nk * n.dv * n.e;
  const Bytes K_each = BH * n.Nk * n.d * n.e, V_each = BH * n.Nk * n.dv * n.e;
  const bool grouped = shape.group_size() > 1;

  std::vector<StageTraffic> stages;
  stages.reserve(6);
  const auto stage = [&](std::string_view name) -> Traffic& {
    return stages.emplace_back(StageTraffic{name, Traffic(Boundary::sm_l2)}).traffic;
  };
  Traffic& dv = stage("dv");
  dv.read(Tensor::P, P);
  dv.read(Tensor::dO, dO);
  dv.write(grouped ? Tensor::dVx : Tensor::dV, V_each);
  Traffic& dp = stage("dp");
  dp.read(Tensor::dO, dO);
  dp.read(Tensor::V, V);
  dp.write(Tensor::dP, P);
  Traffic& ds = stage("ds");
  ds.read(Tensor::P, P);
  ds.read(Tensor::dP, P);
  ds.write(Tensor::dS, dS);
  Traffic& dq = stage("dq");
  dq.read(Tensor::dS, dS);
  dq.read(Tensor::K, K);
  dq.write(Tensor::dQ, Q);
  Traffic& dk = stage("dk");
  dk.read(Tensor::dS, dS);
  dk.read(Tensor::Q, Q);
  dk.write(grouped ? Tensor::dKx : Tensor::dK, K_each);
  if (grouped) {
    Traffic& reduce = stage("reduce");
    reduce.read(Tensor::dKx, K_each);
    reduce.read(Tensor::dVx, V_each);
    reduce.write(Tensor::dK, K);
    reduce.write(Tensor::dV, V);
  }
  return stages;
}

// Four products: dV and dP over d_v, dQ and dK over d. Nothing is exponentiated: P was saved.
FlopCount flops(const AttentionShape& s, const TilePlan&) {
  const closed::Sizes n(s);
  FlopCount count = closed::count_flops(s, Count(4) * (n.d + n.dv),
                                        Count(4) * (closed::padded(s.head_dim) + closed::padded(s.head_dim_v)),
                                        n.B * n.H, s.seqlen_q, s.seqlen_kv);
  count.exp = Count(0);
  return count;
}

constexpr PlanKey kKeys[] = {PlanKey::fp32_scores};

}  // namespace

const Algorithm kNaiveBwd{
    .name = "naive_bwd",
    .summary = "P saved; dP and dS in HBM, 5 kernels",
    .reference = "FlashAttention, arXiv 2205.14135, Algorithm 3",
    .formula = "7 N^2 e + 8 N d e",
    .pass = Pass::backward,
    .plan_keys = kKeys,
    .walk = walk,
    .closed_form = closed_form,
    .flops = flops,
};

}  // namespace hbmscope
