#include "analysis/remarks.hpp"
#include "analysis/run_parts.hpp"

namespace hbmscope {
namespace {

/// Which stages multiply, and what part of the algorithm's matmul FLOPs each does. Products contract over d or d_v, so
/// the parts are exact.
std::optional<FlopCount> stage_flops(const Algorithm& a, std::string_view stage, const AttentionShape& s,
                                     const FlopCount& all) {
  const auto part = [](Flop whole, std::int64_t mine, std::int64_t sum) { return Flop(whole.value() / sum * mine); };
  const std::int64_t d = s.head_dim, dv = s.head_dim_v;
  const std::int64_t pd = (d + 15) / 16 * 16, pdv = (dv + 15) / 16 * 16;
  const auto contracts = [&](std::int64_t dim, std::int64_t padded, std::int64_t products) {
    return FlopCount{part(all.matmul, dim, products * (d + dv)),
                     part(all.executed_matmul, padded, products * (pd + pdv)), Count(0)};
  };
  if (stage == "fused") return all;
  if (a.name == "naive") {
    if (stage == "qk") return contracts(d, pd, 1);
    if (stage == "pv") return contracts(dv, pdv, 1);
    if (stage == "softmax") return FlopCount{Flop(0), Flop(0), all.exp};
  }
  if (a.name == "naive_bwd") {
    if (stage == "dq" || stage == "dk") return contracts(d, pd, 2);
    if (stage == "dv" || stage == "dp") return contracts(dv, pdv, 2);
  }
  return std::nullopt;
}

TrafficEntry compulsory_entry(const Algorithm& a, const AttentionShape& shape, const TilePlan& plan) {
  TrafficEntry entry = bare_entry(Boundary::compulsory, Provenance::formula, plan,
                                  Known<Traffic>::of(compulsory_traffic(shape, a.pass)));
  entry.formula =
      a.pass == Pass::backward ? "live rows of Q, K, V, dO once; dQ, dK, dV once" : "live rows of Q, K, V once; O once";
  entry.formula_exact = true;
  return entry;
}

TrafficEntry closed_entry(const Algorithm& a, const AttentionShape& shape, const TilePlan& plan,
                          const std::vector<StageTraffic>& stages) {
  TrafficEntry entry = bare_entry(Boundary::sm_l2, Provenance::closed_form, plan, Known<Traffic>::of(total(stages)));
  const PlainFormula formula = plain_formula(a, shape, plan);
  entry.formula = formula.text;
  entry.formula_exact = formula.exact;
  return entry;
}

AlgorithmResult counted(const Algorithm& a, const RunResult& result) {
  const RunRequest& r = result.request;
  AlgorithmResult one;
  one.algorithm = &a;
  one.plan = choose_plan(a, r.shape, plan_on_device(result, a, r.plan), result.sram);
  if (a.name == "split_kv")
    one.plan.num_kv_splits = r.kv_splits.value_or(choose_kv_splits(r.shape, one.plan, r.gpu.num_sms));
  one.flops = a.flops(r.shape, one.plan);
  one.smem = smem_tally(a, r.shape, one.plan);

  one.traffic.push_back(compulsory_entry(a, r.shape, one.plan));
  if (one.plan.gemm_tile) {
    TilePlan once = one.plan;
    once.gemm_tile.reset();
    one.traffic.push_back(closed_entry(a, r.shape, once, a.closed_form(r.shape, once)));
  }
  const std::vector<StageTraffic> stages = a.closed_form(r.shape, one.plan);
  one.memory = memory_ledger(a, stages, r.shape, one.plan);
  one.traffic.push_back(closed_entry(a, r.shape, one.plan, stages));
  for (const StageTraffic& stage : stages) {
    StageResult& s = one.stages.emplace_back();
    s.name = stage.stage;
    s.traffic.push_back(
        bare_entry(Boundary::sm_l2, Provenance::closed_form, one.plan, Known<Traffic>::of(stage.traffic)));
    s.flops = stage_flops(a, stage.stage, r.shape, one.flops);
  }
  return one;
}

}  // namespace

void count_traffic(RunResult& result) {
  for (const std::string& name : result.request.algorithms)
    result.algorithms.push_back(counted(algorithm(name), result));
}

}  // namespace hbmscope
