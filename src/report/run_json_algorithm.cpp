#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/run_roofs.hpp"
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
      because(several, "one pace was simulated: the CTAs share no streams, or the walk is too long for more");
  to["l2_read_hit_rate"] = entry.hit_rate ? real(*entry.hit_rate) : Json(nullptr);
  to["l2_read_hit_rate_reason"] = because(entry.hit_rate.has_value(), "the kernels read nothing");
}

/// Of an entry, what rows have too: which bytes these are, and their sums.
void write_entry(JsonText& to, const Algorithm& a, const TrafficEntry& entry) {
  to.member("boundary", name(entry.boundary));
  to.member("provenance", name(entry.provenance));
  to.key("plan");
  write_plan(to, entry.plan, a.plan_keys);
  add_status(to, entry.traffic);
  const auto sum = entry.traffic ? std::optional(entry.traffic->sum()) : std::nullopt;
  const auto put = [&](const char* key, Bytes bytes) {
    to.member(key, sum ? std::optional(bytes.value()) : std::nullopt);
  };
  put("read_bytes", sum.value_or(ReadWrite{}).read);
  put("write_bytes", sum.value_or(ReadWrite{}).write);
  put("total_bytes", sum.value_or(ReadWrite{}).total());
}

Json entry_json(const Algorithm& a, const TrafficEntry& entry) {
  Json out = object_of([&](JsonText& to) { write_entry(to, a, entry); });
  if (entry.traffic) {
    const bool by_tensor = entry.provenance != Provenance::hw_counter;
    out["tensors"] = by_tensor ? tensors(*entry.traffic) : Json(nullptr);
    out["tensors_reason"] = because(by_tensor, "hardware counts bytes without knowing whose they are");
  } else {
    out["tensors"] = nullptr;
  }
  out["formula"] = entry.formula.empty() ? Json(nullptr) : Json(entry.formula);
  out["formula_exact"] = entry.formula_exact;
  if (entry.traffic && !entry.paces.empty()) add_paces(out, entry);
  return out;
}

void write_flops(JsonText& to, const std::optional<FlopCount>& flops) {
  const FlopCount count = flops.value_or(FlopCount{});
  to.member("matmul", count.matmul.value());
  to.member("executed_matmul", count.executed_matmul.value());
  to.member("exp", count.exp.value());
  to.member("convention", "exact live pairs");
}

void write_time(JsonText& to, const Known<Seconds>& predicted) {
  to.member("predicted_s", predicted ? std::optional(predicted->value) : std::nullopt);
  to.member("predicted_status", name(predicted.status));
  text_or_null(to, "predicted_reason", predicted.reason);
}

Json stage_time_json(const StageResult& stage) {
  const Known<Seconds> median = stage.measured ? stage.measured->median : unknown<Seconds>(stage.measured);
  return object_of([&](JsonText& to) {
    write_time(to, stage.predicted);
    to.member("measured_median_s", median ? std::optional(median->value) : std::nullopt);
    to.key("samples_s");
    to.begin_list();
    to.end_list();
    add_status(to, median);
  });
}

void write_whole_time(JsonText& to, const AlgorithmResult& a) {
  write_time(to, a.predicted);
  if (a.limit) {
    constexpr std::array<std::string_view, 4> kNames{"hbm", "compute", "padding", "launches"};
    to.member("predicted_limit", kNames[static_cast<std::size_t>(*a.limit)]);
  }
  const Known<TimeSamples> time = a.measured ? a.measured->time : unknown<TimeSamples>(a.measured);
  to.member("measured_median_s", time ? std::optional(time->median) : std::nullopt);
  to.key("samples_s");
  to.begin_list();
  if (time) {
    for (const double s : time->seconds) to.value(s);
  }
  to.end_list();
  if (time) {
    to.member("measured_least_s", time->least);
    to.member("measured_most_s", time->most);
    to.member("measured_spread", time->spread);
    to.member("l2_state", time->cold_l2 ? "cold" : "warm");
    to.key("clocks");
    to.begin_object();
    write_clocks(to, time->clocks);
    to.end_object();
  }
  add_status(to, time);
}

/// What a pipeline takes in memory, but for the tensors that it is made of.
void write_memory(JsonText& to, const MemoryLedger& memory, const Known<PipelineMeasurement>& measured) {
  const Known<Bytes> peak = measured ? measured->peak : unknown<Bytes>(measured);
  to.member("intermediate_bytes", memory.intermediate_bytes.value());
  to.member("saved_for_backward_bytes", memory.saved_for_backward_bytes.value());
  to.member("peak_bytes", memory.peak_bytes.value());
  to.member("peak_stage", memory.peak_stage);
  to.member("measured_peak_bytes", peak ? std::optional(peak->value()) : std::nullopt);
  because(to, "measured_reason", bool(peak), peak.reason);
}

Json memory_json(const MemoryLedger& memory, const Known<PipelineMeasurement>& measured) {
  Json out = object_of([&](JsonText& to) { write_memory(to, memory, measured); });
  Json& ledger = out["ledger"] = Json::array();
  for (const LedgerEntry& entry : memory.entries) {
    ledger.push_back({{"tensor", info(entry.tensor).name},
                      {"bytes", entry.bytes.value()},
                      {"intermediate", entry.intermediate},
                      {"saved_for_backward", entry.saved_for_backward}});
  }
  return out;
}

/// `whole` results say where an intensity is known all the same; rows have no such place.
void write_roofline(JsonText& to, const Known<Roofline>& known, const Known<FlopPerSecond>& achieved, bool whole) {
  const auto put = [&](const char* key, auto get) {
    to.member(key, known ? std::optional(get(*known)) : std::nullopt);
  };
  to.member("level", "l2_hbm");
  put("intensity_flop_per_byte", [](const Roofline& r) { return r.intensity.value; });
  if (whole)
    because(to, "intensity_reason", bool(known), "there is no roofline; roofline_by_boundary has what is known");
  put("ridge_flop_per_byte", [](const Roofline& r) { return r.ridge.value; });
  put("bound", [](const Roofline& r) { return name(r.bound); });
  put("attainable_flop_per_s", [](const Roofline& r) { return r.attainable.value; });
  to.member("achieved_flop_per_s", achieved ? std::optional(achieved->value) : std::nullopt);
  because(to, "achieved_reason", bool(achieved), achieved.reason);
  add_status(to, known);
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
  const std::vector<GpuRoof>& measured = r.request.gpu.measured_roofs;
  const auto l2 = std::find_if(measured.begin(), measured.end(),
                               [](const GpuRoof& roof) { return roof.resource == RoofResource::l2; });
  for (const Boundary boundary : {Boundary::compulsory, Boundary::l2_hbm, Boundary::sm_l2}) {
    const TrafficEntry* entry = a.at(boundary);
    const bool counted = entry != nullptr && entry->traffic && entry->traffic->total().value() > 0;
    const bool has_ridge = peak.has_value() && (boundary != Boundary::sm_l2 || l2 != measured.end());
    const BytesPerSecond bandwidth =
        boundary == Boundary::sm_l2 && has_ridge ? BytesPerSecond{l2->rate} : r.request.gpu.hbm_bandwidth;
    const std::string no_intensity = entry != nullptr && entry->traffic ? "no bytes" : reason_not_simulated(a);
    const std::string no_ridge =
        peak ? "the L2 bandwidth of this GPU is not known" : "this GPU has no matmul rate for the dtype";
    const Json ridge = has_ridge ? real((*peak / bandwidth).value) : Json(nullptr);
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

/// The roof that the algorithm meets first, of all that are known.
Json lowest_roof_json(const RunResult& r, const AlgorithmResult& a) {
  const std::vector<GpuRoof> roofs = roofs_of(r.request);
  const std::optional<LowestRoof> lowest = lowest_roof(roofs, demand_of(a));
  return {{"name", lowest ? Json(lowest->roof->name) : Json(nullptr)},
          {"allowed_flop_per_s", lowest ? real(lowest->flop_per_s) : Json(nullptr)},
          {"reason", because(lowest.has_value(), "the bytes through HBM are not known, or there are no FLOP")}};
}

Json errors_json(const ErrorHistogram& errors) {
  Json bins = Json::array();
  for (const ErrorBin& bin : errors.bins) {
    bins.push_back(
        {{"from", std::ldexp(1.0, bin.log2)}, {"to", std::ldexp(1.0, bin.log2 + 1)}, {"elements", bin.elements}});
  }
  return {{"exact_elements", errors.exact}, {"bins", bins}};
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
  put("errors",
      [](const Exactness& e) { return std::isfinite(e.max_abs_error) ? errors_json(e.errors) : Json(nullptr); });
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
  Json out = {{"name", stage.name},
              {"traffic", traffic},
              {"flops", object_of([&](JsonText& to) { write_flops(to, stage.flops); })},
              {"time", stage_time_json(stage)}};
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

void write_algorithm_row(JsonText& to, const AlgorithmResult& a) {
  const auto object = [&](const char* key, auto write) {
    to.key(key);
    to.begin_object();
    write();
    to.end_object();
  };
  to.begin_object();
  to.member("name", a.algorithm->name);
  to.key("plan");
  write_plan(to, a.plan, a.algorithm->plan_keys);
  to.key("traffic");
  to.begin_list();
  for (const TrafficEntry& entry : a.traffic) {
    to.begin_object();
    write_entry(to, *a.algorithm, entry);
    to.end_object();
  }
  to.end_list();
  object("flops", [&] { write_flops(to, a.flops); });
  object("memory", [&] { write_memory(to, a.memory, a.measured); });
  object("roofline", [&] { write_roofline(to, a.roofline, a.achieved, false); });
  object("time", [&] { write_whole_time(to, a); });
  to.end_object();
}

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
          {"sm_clock_spread", a.sm_clock_spread ? real(*a.sm_clock_spread) : Json(nullptr)},
          {"sm_clock_spread_reason", because(static_cast<bool>(a.sm_clock_spread),
                                             a.resident_ctas > 0 ? a.sm_clock_spread.reason : reason_not_simulated(a))},
          {"flops", object_of([&](JsonText& to) { write_flops(to, a.flops); })},
          {"memory", memory_json(a.memory, a.measured)},
          {"roofline", object_of([&](JsonText& to) { write_roofline(to, a.roofline, a.achieved, true); })},
          {"roofline_by_boundary", rooflines_json(r, a)},
          {"lowest_roof", lowest_roof_json(r, a)},
          {"time", object_of([&](JsonText& to) { write_whole_time(to, a); })},
          {"exactness", exactness_json(a.exactness, a.algorithm->name == "naive")}};
}

}  // namespace hbmscope::run_json
