#pragma once
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/algorithm.hpp"
#include "scenario/gpu_file.hpp"
#include "simulate/l2_model.hpp"

/// Saved runs as the model takes them.
namespace hbmscope::reports {

using nlohmann::json;

/// The rows of a file of JSON lines.
inline std::vector<json> rows_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<json> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(json::parse(line));
  return rows;
}

inline AttentionShape shape_of(const json& j) {
  AttentionShape s;
  s.batch = j["batch"];
  s.num_heads = j["num_heads"];
  s.num_kv_heads = j["num_kv_heads"];
  s.seqlen_q = j["seqlen_q"];
  s.seqlen_kv = j["seqlen_kv"];
  s.head_dim = j["head_dim"];
  s.head_dim_v = j["head_dim_v"];
  s.dtype = j["dtype"] == "bf16" ? Dtype::bf16 : Dtype::fp16;
  if (j["mask"]["kind"] == "causal") s.mask = Mask::causal();
  return s;
}

inline TilePlan plan_of(const json& j) {
  TilePlan plan;
  if (j.contains("block_q")) plan.block_q = j["block_q"], plan.block_kv = j["block_kv"];
  if (j.contains("gemm_tile")) plan.gemm_tile = {{j["gemm_tile"][0], j["gemm_tile"][1]}};
  if (j.contains("softmax_reads")) plan.softmax_reads = j["softmax_reads"];
  if (j.contains("stages")) plan.stages = j["stages"];
  if (j.contains("cluster")) plan.cluster = j["cluster"];
  if (j.contains("order") && j["order"] != "ascending") {
    plan.order = j["order"] == "longest_first" ? CtaOrder::longest_first : CtaOrder::longest_first_interleaved;
  }
  return plan;
}

/// The last entry of that boundary and provenance, if its bytes are known.
inline const json* entry(const json& algorithm, const char* boundary, const char* provenance) {
  const json* found = nullptr;
  for (const json& t : algorithm["traffic"]) {
    if (t["boundary"] == boundary && t["provenance"] == provenance && !t["read_bytes"].is_null()) found = &t;
  }
  return found;
}

/// The L2 of the GPU of a run, cold.
inline L2Config l2_of(const json& run) {
  const GpuSpec& gpu = embedded_gpu(run["gpu"]["name"].get<std::string>());
  return l2_config(gpu, gpu.l2_effective_bytes, false);
}

/// What the model predicts for one algorithm of a saved run, under the plan that was measured, or else simulated then;
/// null where neither was. Its bytes by stage, in the order of the stages, and in all.
inline json predicted(const json& run, const json& algorithm_of_run) {
  const json* before = entry(algorithm_of_run, "l2_hbm", "hw_counter");
  if (before == nullptr) before = entry(algorithm_of_run, "l2_hbm", "simulated");
  if (before == nullptr) return nullptr;
  const auto bytes = [](const ReadWrite& t) {
    return json{{"read_bytes", t.read.value()}, {"write_bytes", t.write.value()}};
  };
  const TilePlan plan = plan_of((*before)["plan"]);
  const Algorithm& algorithm = hbmscope::algorithm(algorithm_of_run["name"].get<std::string>());
  const AttentionShape shape = shape_of(run["shape"]);
  const L2Result l2 = simulate_l2(algorithm.walk(shape, plan), plan.order, l2_of(run), Pace::coupled);
  json stages = json::array();
  for (const StageTraffic& stage : l2.stages) {
    json one = bytes(stage.traffic.sum());
    one["name"] = stage.stage;
    stages.push_back(one);
  }
  return {{"shape", run["shape"]},
          {"algorithm", algorithm_of_run["name"]},
          {"sm_l2", bytes(total(algorithm.closed_form(shape, plan)).sum())},
          {"l2_hbm", bytes(l2.traffic.sum())},
          {"stages", stages}};
}

}  // namespace hbmscope::reports
