#pragma once
#include <algorithm>
#include <fstream>
#include <map>
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
  for (const DtypeInfo& d : kDtypes) {
    if (j["dtype"] == d.name) s.dtype = d.dtype;
  }
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
/// By how much clocks of SMs were apart, fastest over slowest less 1, in the mean over an algorithm's own launch; 0 where
/// nobody counted.
inline double clock_spread(const json& run, const std::string& algorithm) {
  if (!run["device"].contains("pipelines")) return 0;
  for (const json& pipeline : run["device"]["pipelines"]) {
    const json& hw = pipeline["hw"];
    if (pipeline["name"] != algorithm || !hw.contains("sm_clock_least_hz") || hw["sm_clock_least_hz"].is_null()) continue;
    return hw["sm_clock_most_hz"].get<double>() / hw["sm_clock_least_hz"].get<double>() - 1;
  }
  return 0;
}
/// How far clocks are taken to be apart as a launch begins, by algorithm and head_dim: the most that launches of the file
/// counted. In some long ones it is less, as clocks come together while they run; launches of less than some milliseconds
/// are no measure, as SMs start and end them at different times.
using ClockSpreads = std::map<std::string, double>;
inline constexpr double kShortestMeasure_s = 5e-3;
inline std::string spread_key(const json& run, const std::string& algorithm) {
  return algorithm + run["shape"]["head_dim"].dump();
}
inline ClockSpreads clock_spreads(const std::vector<json>& runs) {
  ClockSpreads spreads;
  for (const json& run : runs) {
    if (!run.contains("algorithms")) continue;
    for (const json& a : run["algorithms"]) {
      const json& seconds = a["time"]["measured_median_s"];
      if (!seconds.is_number() || seconds.get<double>() < kShortestMeasure_s) continue;
      double& most = spreads[spread_key(run, a["name"])];
      most = std::max(most, clock_spread(run, a["name"]));
    }
  }
  return spreads;
}

/// The same with the clocks of its SMs, where they matter: those that the line has, or else spread as those of the GPU
/// file, as far apart as at first, and then alike. When: so that the mean is what the algorithm's own launch counted.
inline L2Config l2_of(const json& run, const std::string& algorithm, const std::vector<KernelWalk>& kernels,
                      const ClockSpreads& spreads, CtaOrder order) {
  const GpuSpec& gpu = embedded_gpu(run["gpu"]["name"].get<std::string>());
  L2Config config = l2_config(gpu, gpu.l2_effective_bytes, false, kernels, shape_of(run["shape"]), order);
  if (config.sm_clocks.empty()) return config;
  if (run.contains("sm_clock_hz")) {
    config.sm_clocks = run["sm_clock_hz"].get<std::vector<double>>();
    return config;
  }
  const double mean = clock_spread(run, algorithm);
  if (mean == 0) return config;
  const auto known = spreads.find(spread_key(run, algorithm));
  const double at_first = known == spreads.end() ? mean : std::max(mean, known->second);
  const auto [slowest, fastest] = std::minmax_element(gpu.sm_clocks.begin(), gpu.sm_clocks.end());
  for (double& clock : config.sm_clocks) clock = 1 + (clock - *slowest) / (*fastest - *slowest) * at_first;
  config.clocks_apart = mean / at_first;
  return config;
}

/// What the model predicts for one algorithm of a saved run, under the plan that was measured, or else simulated then;
/// null where neither was. Its bytes by stage, in the order of the stages, and in all.
inline json predicted(const json& run, const json& algorithm_of_run, const ClockSpreads& spreads = {}) {
  const json* before = entry(algorithm_of_run, "l2_hbm", "hw_counter");
  if (before == nullptr) before = entry(algorithm_of_run, "l2_hbm", "simulated");
  if (before == nullptr) return nullptr;
  const auto bytes = [](const ReadWrite& t) {
    return json{{"read_bytes", t.read.value()}, {"write_bytes", t.write.value()}};
  };
  const TilePlan plan = plan_of((*before)["plan"]);
  const Algorithm& algorithm = hbmscope::algorithm(algorithm_of_run["name"].get<std::string>());
  const AttentionShape shape = shape_of(run["shape"]);
  const std::vector<KernelWalk> kernels = algorithm.walk(shape, plan);
  const L2Config config = l2_of(run, algorithm_of_run["name"], kernels, spreads, plan.order);
  const L2Result l2 = simulate_l2(kernels, plan.order, config, config.sm_clocks.empty() ? Pace::coupled : Pace::drifting);
  json stages = json::array();
  for (const StageTraffic& stage : l2.stages) {
    json one = bytes(stage.traffic.sum());
    one["name"] = stage.stage;
    stages.push_back(one);
  }
  json line = {{"shape", run["shape"]},
          {"algorithm", algorithm_of_run["name"]},
          {"sm_l2", bytes(total(algorithm.closed_form(shape, plan)).sum())},
          {"l2_hbm", bytes(l2.traffic.sum())},
          {"stages", stages}};
  if (run.contains("gpu_number")) line["gpu_number"] = run["gpu_number"];
  return line;
}

}  // namespace hbmscope::reports
