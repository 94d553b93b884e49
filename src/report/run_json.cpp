#include "report/run_json.hpp"

#include <cmath>

#include "core/version.hpp"
#include "scenario/batch_line.hpp"

namespace hbmscope {
namespace {

using Json = nlohmann::ordered_json;

Json real(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

template <class T>
void add_status(Json& to, const Known<T>& known) {
  to["status"] = name(known.status);
  to["reason"] = known.reason.empty() ? Json(nullptr) : Json(known.reason);
}

Json tensors(const Traffic& traffic) {
  Json out = Json::object();
  for (const TensorInfo& tensor : kTensors) {
    const ReadWrite& bytes = traffic[tensor.tensor];
    if (bytes.total().value() == 0) continue;
    out[std::string(tensor.name)] = {{"read_bytes", bytes.read.value()}, {"write_bytes", bytes.write.value()}};
  }
  return out;
}

Json entry_json(const Algorithm& a, const TrafficEntry& entry) {
  Json out;
  out["boundary"] = name(entry.boundary);
  out["provenance"] = name(entry.provenance);
  out["plan"] = plan_to_json(entry.plan, a.plan_keys);
  add_status(out, entry.traffic);
  if (entry.traffic) {
    const ReadWrite sum = entry.traffic->sum();
    out["read_bytes"] = sum.read.value();
    out["write_bytes"] = sum.write.value();
    out["total_bytes"] = sum.total().value();
    out["tensors"] = tensors(*entry.traffic);
  } else {
    for (const char* key : {"read_bytes", "write_bytes", "total_bytes", "tensors"}) out[key] = nullptr;
  }
  out["formula"] = entry.formula.empty() ? Json(nullptr) : Json(entry.formula);
  out["formula_exact"] = entry.formula_exact;
  if (entry.boundary == Boundary::l2_hbm && entry.traffic) {
    Json paces = Json::object();
    Bytes least = entry.traffic->total(), most = least;
    for (const L2Estimate::PaceTotal& pace : entry.paces) {
      paces[std::string(name(pace.pace))] = pace.total.value();
      least = std::min(least, pace.total);
      most = std::max(most, pace.total);
    }
    const bool stage = entry.paces.empty();
    if (!stage) {
      out["pace_total_bytes"] = paces;
      const bool interval = entry.paces.size() > 1;
      out["least_total_bytes"] = interval ? Json(least.value()) : Json(nullptr);
      out["most_total_bytes"] = interval ? Json(most.value()) : Json(nullptr);
      out["l2_read_hit_rate"] = entry.hit_rate ? real(*entry.hit_rate) : Json(nullptr);
    }
  }
  return out;
}

Json flops_json(const std::optional<FlopCount>& flops) {
  if (!flops) return {{"matmul", 0}, {"executed_matmul", 0}, {"exp", 0}, {"convention", "exact live pairs"}};
  return {{"matmul", flops->matmul.value()},
          {"executed_matmul", flops->executed_matmul.value()},
          {"exp", flops->exp.value()},
          {"convention", "exact live pairs"}};
}

std::string reason_not_measured(const DeviceStatus& device) {
  return device.present ? "this version runs no kernels" : device.reason;
}

Json time_json(const Known<Seconds>& predicted, const DeviceStatus& device) {
  Json out;
  out["predicted_s"] = predicted ? real(predicted->value) : Json(nullptr);
  out["predicted_status"] = name(predicted.status);
  out["predicted_reason"] = predicted.reason.empty() ? Json(nullptr) : Json(predicted.reason);
  out["measured_median_s"] = nullptr;
  out["samples_s"] = Json::array();
  out["status"] = name(Status::unsupported);
  out["reason"] = reason_not_measured(device);
  return out;
}

Json memory_json(const MemoryLedger& memory, const DeviceStatus& device) {
  Json ledger = Json::array();
  for (const LedgerEntry& entry : memory.entries) {
    ledger.push_back({{"tensor", info(entry.tensor).name},
                      {"bytes", entry.bytes.value()},
                      {"intermediate", entry.intermediate},
                      {"saved_for_backward", entry.saved_for_backward}});
  }
  return {{"intermediate_bytes", memory.intermediate_bytes.value()},
          {"saved_for_backward_bytes", memory.saved_for_backward_bytes.value()},
          {"peak_bytes", memory.peak_bytes.value()},
          {"peak_stage", memory.peak_stage},
          {"measured_peak_bytes", nullptr},
          {"measured_reason", reason_not_measured(device)},
          {"ledger", ledger}};
}

Json roofline_json(const Known<Roofline>& known, const DeviceStatus& device) {
  Json out;
  out["level"] = "l2_hbm";
  out["intensity_flop_per_byte"] = known ? real(known->intensity.value) : Json(nullptr);
  out["ridge_flop_per_byte"] = known ? real(known->ridge.value) : Json(nullptr);
  out["bound"] = known ? Json(name(known->bound)) : Json(nullptr);
  out["attainable_flop_per_s"] = known ? real(known->attainable.value) : Json(nullptr);
  out["achieved_flop_per_s"] = nullptr;
  out["achieved_reason"] = reason_not_measured(device);
  add_status(out, known);
  return out;
}

/// Intensity at each boundary; its ridge where the bandwidth of that boundary is known.
Json rooflines_json(const RunResult& r, const AlgorithmResult& a) {
  Json levels = Json::array();
  const auto& peak = r.request.gpu.peak[static_cast<std::size_t>(r.request.shape.dtype)];
  for (const Boundary boundary : {Boundary::compulsory, Boundary::l2_hbm, Boundary::sm_l2}) {
    const TrafficEntry* entry = a.at(boundary);
    const bool counted = entry != nullptr && entry->traffic && entry->traffic->total().value() > 0;
    const bool has_ridge = boundary != Boundary::sm_l2 && peak.has_value();
    std::string reason;
    if (!counted) {
      reason = entry == nullptr ? "--engine model leaves the L2 out"
               : entry->traffic ? "no bytes"
                                : entry->traffic.reason;
    } else if (!has_ridge) {
      reason = peak ? "the L2 bandwidth of this GPU is not known" : "this GPU has no matmul rate for the dtype";
    }
    const Json ridge = has_ridge ? real((*peak / r.request.gpu.hbm_bandwidth).value) : Json(nullptr);
    levels.push_back(
        {{"level", name(boundary)},
         {"intensity_flop_per_byte", counted ? real((a.flops.matmul / entry->traffic->total()).value) : Json(nullptr)},
         {"ridge_flop_per_byte", ridge},
         {"reason", reason.empty() ? Json(nullptr) : Json(reason)}});
  }
  return levels;
}

Json exactness_json(const Known<Exactness>& known, bool naive) {
  Json out;
  out["reference"] = "fp64";
  const auto put = [&](const char* key, auto get) { out[key] = known ? Json(get(*known)) : Json(nullptr); };
  put("rows_checked", [](const Exactness& e) { return Json(e.rows_checked); });
  put("complete", [](const Exactness& e) { return Json(e.complete); });
  put("max_abs_error", [](const Exactness& e) { return real(e.max_abs_error); });
  put("rmse", [](const Exactness& e) { return real(e.rmse); });
  put("max_abs_reference", [](const Exactness& e) { return real(e.max_abs_reference); });
  put("tolerance", [](const Exactness& e) { return real(e.tolerance); });
  put("within_tolerance", [](const Exactness& e) { return Json(e.within_tolerance); });
  put("bitwise_equal_to_naive", [](const Exactness& e) { return Json(e.bitwise_equal_to_naive); });
  put("nonfinite_scores", [](const Exactness& e) { return Json(e.nonfinite_scores); });
  put("nonfinite_outputs", [](const Exactness& e) { return Json(e.nonfinite_outputs); });
  put("fully_masked_rows", [](const Exactness& e) { return Json(e.fully_masked_rows); });
  out["tolerance_rule"] =
      naive ? "a bound from rounding S, P and O and from fp32 sums, since the others are held against naive itself"
            : "twice the same-dtype naive error against fp64 + 1 ulp of the dtype at max |O|";
  add_status(out, known);
  return out;
}

Json stage_json(const Algorithm& a, const StageResult& stage, const DeviceStatus& device) {
  Json traffic = Json::array();
  for (const TrafficEntry& entry : stage.traffic) traffic.push_back(entry_json(a, entry));
  return {{"name", stage.name},
          {"traffic", traffic},
          {"flops", flops_json(stage.flops)},
          {"time", time_json(stage.predicted, device)},
          {"tensor_pipe_share", nullptr},
          {"tensor_pipe_reason", reason_not_measured(device)}};
}

Json algorithm_json(const RunResult& r, const AlgorithmResult& a) {
  const DeviceStatus& device = r.device;
  Json traffic = Json::array(), stages = Json::array();
  for (const TrafficEntry& entry : a.traffic) traffic.push_back(entry_json(*a.algorithm, entry));
  for (const StageResult& stage : a.stages) stages.push_back(stage_json(*a.algorithm, stage, device));
  return {{"name", a.algorithm->name},
          {"summary", a.algorithm->summary},
          {"reference", a.algorithm->reference},
          {"plan", plan_to_json(a.plan, a.algorithm->plan_keys)},
          {"smem_bytes", a.smem.total.value()},
          {"traffic", traffic},
          {"stages", stages},
          {"kernel_count", static_cast<std::int64_t>(a.stages.size())},
          {"launch_gap_s", nullptr},
          {"launch_gap_reason", reason_not_measured(device)},
          {"resident_ctas", a.resident_ctas > 0 ? Json(a.resident_ctas) : Json(nullptr)},
          {"kv_in_flight_bytes", a.kv_in_flight ? Json(a.kv_in_flight->value()) : Json(nullptr)},
          {"flops", flops_json(a.flops)},
          {"memory", memory_json(a.memory, device)},
          {"roofline", roofline_json(a.roofline, device)},
          {"roofline_by_boundary", rooflines_json(r, a)},
          {"time", time_json(a.predicted, device)},
          {"exactness", exactness_json(a.exactness, a.algorithm->name == "naive")}};
}

Json gpu_json(const RunResult& r) {
  const GpuSpec& gpu = r.request.gpu;
  Json peak = Json::object(), sources = Json::array();
  for (const DtypeInfo& dtype : kDtypes) {
    const auto& rate = gpu.peak[static_cast<std::size_t>(dtype.dtype)];
    peak[std::string(dtype.name)] = rate ? real(rate->value) : Json(nullptr);
  }
  for (const auto& [key, source] : gpu.sources)
    sources.push_back({{"key", key}, {"title", source.title}, {"date", source.date}});
  return {{"name", gpu.name},
          {"assumed", r.request.gpu_assumed},
          {"num_sms", gpu.num_sms},
          {"hbm_bandwidth_bytes_per_s", real(gpu.hbm_bandwidth.value)},
          {"hbm_bytes", gpu.hbm_bytes.value()},
          {"l2_bytes", gpu.l2_bytes.value()},
          {"l2_effective_bytes", r.l2_effective.value()},
          {"l2_effective_provenance", name(r.l2_provenance)},
          {"l2_effective_reason", r.request.l2 ? "given with --l2" : gpu.l2_effective_reason},
          {"l2_state", r.request.l2_warm ? "warm" : "cold"},
          {"smem_per_block_bytes", gpu.smem_per_block_bytes.value()},
          {"smem_per_sm_bytes", gpu.smem_per_sm_bytes.value()},
          {"peak_flop_per_s", peak},
          {"launch_overhead_s", real(gpu.launch_overhead.value)},
          {"sources", sources}};
}

/// A predicted speed-up takes the predicted times of both.
std::string reason_not_predicted(const RunResult& r, const Comparison& c) {
  const AlgorithmResult* of = r.find(c.of);
  return of->predicted ? r.find(c.to)->predicted.reason : of->predicted.reason;
}

Json paper_json(const RunResult& r) {
  const PaperClaims p = r.paper ? *r.paper : PaperClaims{};
  Json out = {{"sram_bytes", p.sram_bytes.value()},
              {"sram_elements", real(p.sram_elements)},
              {"standard", "N d + N^2"},
              {"flash", "N^2 d^2 / M"},
              {"standard_elements", real(p.standard_elements)},
              {"flash_elements", real(p.flash_elements)},
              {"reduction_m_over_d2", real(p.reduction_m_over_d2)},
              {"reduction_m_over_3d2", real(p.reduction_with_constants)},
              {"reduction_n_over_d", real(p.reduction_n_over_d)},
              {"block_q", p.block_q},
              {"block_kv", p.block_kv},
              {"algorithm1_elements", p.algorithm1_elements.value()},
              {"naive_elements", p.naive_elements.value()},
              {"algorithm1_bytes", p.algorithm1_bytes.value()},
              {"algorithm1_bytes_with_init", p.algorithm1_bytes_with_init.value()},
              {"naive_bytes", p.naive_bytes.value()},
              {"reduction_elements", real(p.naive_elements.as_double() / p.algorithm1_elements.as_double())},
              {"reduction_bytes", real(p.naive_bytes.as_double() / p.algorithm1_bytes.as_double())},
              {"reduction_bytes_with_init", real(p.naive_bytes.as_double() / p.algorithm1_bytes_with_init.as_double())},
              {"lower_bound", "min(N^2 d / sqrt(M), N^2 d^2 / M), constants unknown"},
              {"lower_bound_elements", real(p.lower_bound_elements)},
              {"memory_fit_standard_bytes", r.memory_fit ? Json(r.memory_fit->standard.value()) : Json(nullptr)},
              {"memory_fit_flash_bytes", r.memory_fit ? Json(r.memory_fit->flash.value()) : Json(nullptr)}};
  if (!r.paper) {
    for (auto& [key, value] : out.items()) {
      if (value.is_number()) value = nullptr;
    }
  }
  add_status(out, r.paper);
  return out;
}

Json amdahl_json(const RunResult& r) {
  Json out;
  const Known<Amdahl>& a = r.amdahl;
  out["attention_share"] =
      a ? real(a->attention_share) : (r.request.amdahl.share ? real(*r.request.amdahl.share) : Json(nullptr));
  out["attention_speedup"] = a ? real(a->attention_speedup) : Json(nullptr);
  out["attention_speedup_from"] = a ? Json(r.amdahl_speedup_from) : Json(nullptr);
  out["end_to_end_speedup"] = a ? real(a->end_to_end_speedup) : Json(nullptr);
  out["limit"] = a ? real(a->limit) : Json(nullptr);
  add_status(out, a);
  if (a && !std::isfinite(a->limit)) out["reason"] = "no limit: attention is the whole step";
  return out;
}

}  // namespace

nlohmann::ordered_json run_to_json(const RunResult& r, const std::vector<std::string>& argv) {
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["meta"] = {{"tool", "hbmscope"},
                 {"version", hbmscope_version()},
                 {"git", hbmscope_git_revision()},
                 {"argv", argv},
                 {"gpu_driver", nullptr},
                 {"device", r.device.present ? Json(r.device.name) : Json(nullptr)},
                 {"device_reason", r.device.present ? Json(nullptr) : Json(r.device.reason)},
                 {"seed", r.request.seed}};
  out["shape"] = shape_to_json(r.request.shape);
  out["shape"]["pass"] = r.request.pass;
  out["shape"]["live_pairs"] = r.live_pairs.value();
  out["gpu"] = gpu_json(r);
  out["algorithms"] = Json::array();
  for (const AlgorithmResult& a : r.algorithms) out["algorithms"].push_back(algorithm_json(r, a));
  out["paper"] = paper_json(r);
  out["comparison"] = Json::array();
  for (const Comparison& c : r.comparisons) {
    out["comparison"].push_back(
        {{"of", c.of},
         {"to", c.to},
         {"boundary", name(c.boundary)},
         {"traffic_ratio", real(c.traffic_ratio)},
         {"speedup_predicted", c.speedup_predicted ? real(*c.speedup_predicted) : Json(nullptr)},
         {"predicted_reason", c.speedup_predicted ? Json(nullptr) : Json(reason_not_predicted(r, c))},
         {"speedup_measured", nullptr},
         {"measured_reason", reason_not_measured(r.device)}});
  }
  out["amdahl"] = amdahl_json(r);
  out["warnings"] = r.warnings;
  out["notes"] = r.notes;
  return out;
}

}  // namespace hbmscope
