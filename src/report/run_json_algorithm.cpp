#include <array>
#include <cmath>

#include "report/run_json_parts.hpp"
#include "report/run_sections.hpp"
#include "scenario/batch_line.hpp"

namespace hbmscope::run_json {
namespace {

Json tensors(const Traffic& traffic) {
  Json out = Json::object();
  for (const TensorInfo& tensor : kTensors) {
    const ReadWrite& bytes = traffic[tensor.tensor];
    if (bytes.total().value() == 0) continue;
    out[std::string(tensor.name)] = {{"read_bytes", bytes.read.value()}, {"write_bytes", bytes.write.value()}};
  }
  return out;
}

/// What only a simulated entry of a whole algorithm has: the bytes by pace, and how many reads L2 served.
void add_paces(Json& to, const TrafficEntry& entry) {
  Json paces = Json::object();
  for (const L2Estimate::PaceTotal& pace : entry.paces) paces[std::string(name(pace.pace))] = pace.total.value();
  to["pace_total_bytes"] = paces;
  const auto [least, most] = interval(entry);
  const bool several = entry.paces.size() > 1;
  to["least_total_bytes"] = several ? Json(least.value()) : Json(nullptr);
  to["most_total_bytes"] = several ? Json(most.value()) : Json(nullptr);
  to["interval_reason"] =
      because(several, "one pace was simulated: the CTAs share no streams, or the walk is too long for three");
  to["l2_read_hit_rate"] = entry.hit_rate ? real(*entry.hit_rate) : Json(nullptr);
  to["l2_read_hit_rate_reason"] = because(entry.hit_rate.has_value(), "the kernels read nothing");
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
    const bool by_tensor = entry.provenance != Provenance::hw_counter;
    out["tensors"] = by_tensor ? tensors(*entry.traffic) : Json(nullptr);
    out["tensors_reason"] = because(by_tensor, "hardware counts bytes without knowing whose they are");
  } else {
    for (const char* key : {"read_bytes", "write_bytes", "total_bytes", "tensors"}) out[key] = nullptr;
  }
  out["formula"] = entry.formula.empty() ? Json(nullptr) : Json(entry.formula);
  out["formula_exact"] = entry.formula_exact;
  if (entry.traffic && !entry.paces.empty()) add_paces(out, entry);
  return out;
}

Json flops_json(const std::optional<FlopCount>& flops) {
  if (!flops) return {{"matmul", 0}, {"executed_matmul", 0}, {"exp", 0}, {"convention", "exact live pairs"}};
  return {{"matmul", flops->matmul.value()},
          {"executed_matmul", flops->executed_matmul.value()},
          {"exp", flops->exp.value()},
          {"convention", "exact live pairs"}};
}

Json time_json(const Known<Seconds>& predicted) {
  Json out;
  out["predicted_s"] = predicted ? real(predicted->value) : Json(nullptr);
  out["predicted_status"] = name(predicted.status);
  out["predicted_reason"] = predicted.reason.empty() ? Json(nullptr) : Json(predicted.reason);
  return out;
}

Json stage_time_json(const StageResult& stage) {
  Json out = time_json(stage.predicted);
  const Known<Seconds> median = stage.measured ? stage.measured->median : unknown<Seconds>(stage.measured);
  out["measured_median_s"] = median ? real(median->value) : Json(nullptr);
  out["samples_s"] = Json::array();
  add_status(out, median);
  return out;
}

Json whole_time_json(const AlgorithmResult& a) {
  Json out = time_json(a.predicted);
  if (a.limit) {
    constexpr std::array<std::string_view, 4> kNames{"hbm", "compute", "padding", "launches"};
    out["predicted_limit"] = kNames[static_cast<std::size_t>(*a.limit)];
  }
  const Known<TimeSamples> time = a.measured ? a.measured->time : unknown<TimeSamples>(a.measured);
  out["measured_median_s"] = time ? real(time->median) : Json(nullptr);
  out["samples_s"] = Json::array();
  if (time) {
    for (const double s : time->seconds) out["samples_s"].push_back(real(s));
    out["measured_least_s"] = real(time->least);
    out["measured_most_s"] = real(time->most);
    out["measured_spread"] = real(time->spread);
    out["l2_state"] = time->cold_l2 ? "cold" : "warm";
    out["clocks"] = clocks_json(time->clocks);
  }
  add_status(out, time);
  return out;
}

Json memory_json(const MemoryLedger& memory, const Known<PipelineMeasurement>& measured) {
  const Known<Bytes> peak = measured ? measured->peak : unknown<Bytes>(measured);
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
          {"measured_peak_bytes", peak ? Json(peak->value()) : Json(nullptr)},
          {"measured_reason", peak ? Json(nullptr) : Json(peak.reason)},
          {"ledger", ledger}};
}

Json roofline_json(const Known<Roofline>& known, const Known<FlopPerSecond>& achieved) {
  Json out;
  out["level"] = "l2_hbm";
  out["intensity_flop_per_byte"] = known ? real(known->intensity.value) : Json(nullptr);
  out["intensity_reason"] = because(bool(known), "there is no roofline; roofline_by_boundary has what is known");
  out["ridge_flop_per_byte"] = known ? real(known->ridge.value) : Json(nullptr);
  out["bound"] = known ? Json(name(known->bound)) : Json(nullptr);
  out["attainable_flop_per_s"] = known ? real(known->attainable.value) : Json(nullptr);
  out["achieved_flop_per_s"] = achieved ? real(achieved->value) : Json(nullptr);
  out["achieved_reason"] = achieved ? Json(nullptr) : Json(achieved.reason);
  add_status(out, known);
  return out;
}

/// Why an algorithm has no bytes at l2_hbm, nor what its simulation tells beside them.
std::string reason_not_simulated(const AlgorithmResult& a) {
  const TrafficEntry* entry = a.at(Boundary::l2_hbm);
  return entry == nullptr ? "--engine model leaves the L2 out" : entry->traffic.reason;
}

/// Intensity at each boundary; its ridge where the bandwidth of that boundary is known.
Json rooflines_json(const RunResult& r, const AlgorithmResult& a) {
  Json levels = Json::array();
  const auto& peak = r.request.gpu.peak[static_cast<std::size_t>(r.request.shape.dtype)];
  for (const Boundary boundary : {Boundary::compulsory, Boundary::l2_hbm, Boundary::sm_l2}) {
    const TrafficEntry* entry = a.at(boundary);
    const bool counted = entry != nullptr && entry->traffic && entry->traffic->total().value() > 0;
    const bool has_ridge = boundary != Boundary::sm_l2 && peak.has_value();
    const std::string no_intensity = entry != nullptr && entry->traffic ? "no bytes" : reason_not_simulated(a);
    const std::string no_ridge =
        peak ? "the L2 bandwidth of this GPU is not known" : "this GPU has no matmul rate for the dtype";
    const Json ridge = has_ridge ? real((*peak / r.request.gpu.hbm_bandwidth).value) : Json(nullptr);
    levels.push_back(
        {{"level", name(boundary)},
         {"intensity_flop_per_byte", counted ? real((a.flops.matmul / entry->traffic->total()).value) : Json(nullptr)},
         {"intensity_reason", because(counted, no_intensity)},
         {"ridge_flop_per_byte", ridge},
         {"ridge_reason", because(has_ridge, no_ridge)},
         {"reason", because(counted && has_ridge, counted ? no_ridge : no_intensity)}});
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
  if (known && !(std::isfinite(known->max_abs_error) && std::isfinite(known->rmse) && std::isfinite(known->tolerance)))
    out["reason"] = "O or the reference holds infinities or NaN, so that an error is no number";
  return out;
}

Json stage_json(const Algorithm& a, const StageResult& stage) {
  Json traffic = Json::array();
  for (const TrafficEntry& entry : stage.traffic) traffic.push_back(entry_json(a, entry));
  Json out = {
      {"name", stage.name}, {"traffic", traffic}, {"flops", flops_json(stage.flops)}, {"time", stage_time_json(stage)}};
  if (stage.measured) {
    out["hw"] = hw_json(stage.measured->hw);
  } else {
    out["hw"] = nullptr;
    out["hw_reason"] = stage.measured.reason;
  }
  const Known<double> pipe =
      stage.measured ? stage.measured->hw.tensor_instructions_per_cycle : unknown<double>(stage.measured);
  out["tensor_instructions_per_cycle"] = pipe ? real(*pipe) : Json(nullptr);
  out["tensor_pipe_share"] = stage.tensor_pipe_share ? real(*stage.tensor_pipe_share) : Json(nullptr);
  const std::string& reason = pipe ? stage.tensor_pipe_share.reason : pipe.reason;
  out["tensor_pipe_reason"] = reason.empty() ? Json(nullptr) : Json(reason);
  return out;
}

}  // namespace

Json algorithm_json(const RunResult& r, const AlgorithmResult& a) {
  const Known<Seconds> gap = a.measured ? a.measured->launch_gap : unknown<Seconds>(a.measured);
  Json traffic = Json::array(), stages = Json::array();
  for (const TrafficEntry& entry : a.traffic) traffic.push_back(entry_json(*a.algorithm, entry));
  for (const StageResult& stage : a.stages) stages.push_back(stage_json(*a.algorithm, stage));
  return {{"name", a.algorithm->name},
          {"summary", a.algorithm->summary},
          {"reference", a.algorithm->reference},
          {"plan", plan_to_json(a.plan, a.algorithm->plan_keys)},
          {"smem_bytes", a.smem.total.value()},
          {"traffic", traffic},
          {"stages", stages},
          {"kernel_count", static_cast<std::int64_t>(a.stages.size())},
          {"launch_gap_s", gap ? real(gap->value) : Json(nullptr)},
          {"launch_gap_reason", gap ? Json(nullptr) : Json(gap.reason)},
          {"resident_ctas", a.resident_ctas > 0 ? Json(a.resident_ctas) : Json(nullptr)},
          {"resident_ctas_reason", because(a.resident_ctas > 0, reason_not_simulated(a))},
          {"kv_in_flight_bytes", a.kv_in_flight ? Json(a.kv_in_flight->value()) : Json(nullptr)},
          {"kv_in_flight_reason",
           because(a.kv_in_flight.has_value(),
                   a.resident_ctas > 0 ? "no CTAs of its kernels share a stream of K and V" : reason_not_simulated(a))},
          {"flops", flops_json(a.flops)},
          {"memory", memory_json(a.memory, a.measured)},
          {"roofline", roofline_json(a.roofline, a.achieved)},
          {"roofline_by_boundary", rooflines_json(r, a)},
          {"time", whole_time_json(a)},
          {"exactness", exactness_json(a.exactness, a.algorithm->name == "naive")}};
}

}  // namespace hbmscope::run_json
