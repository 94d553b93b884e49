#include "report/run_json.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/run_roofs.hpp"
#include "core/version.hpp"
#include "report/run_document.hpp"
#include "report/run_json_parts.hpp"
#include "scenario/batch_line.hpp"

namespace hbmscope {

using namespace run_json;

namespace {

/// The roofs that the rooflines are drawn against, and that of the L2 even where nobody knows it.
Json roofs_json(const RunResult& r) {
  Json out = Json::array();
  bool has_l2 = false;
  for (const GpuRoof& roof : roofs_of(r.request)) {
    has_l2 = has_l2 || roof.resource == RoofResource::l2;
    out.push_back({{"name", roof.name},
                   {"resource", name(roof.resource)},
                   {"unit", name(roof.unit)},
                   {"rate", real(roof.rate)},
                   {"from", roof.measured ? "measured" : "datasheet"},
                   {"reason", nullptr}});
  }
  if (!has_l2) {
    out.push_back({{"name", "l2_read"},
                   {"resource", name(RoofResource::l2)},
                   {"unit", name(RoofUnit::byte_per_s)},
                   {"rate", nullptr},
                   {"from", nullptr},
                   {"reason", "no datasheet states it; hbmscope gpu probe measures it, and --roofs takes that"}});
  }
  return out;
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
          {"peak_reason",
           because(std::all_of(gpu.peak.begin(), gpu.peak.end(), [](const auto& p) { return p.has_value(); }),
                   "null: this GPU has no matmul rate for the dtype")},
          {"roofs", roofs_json(r)},
          {"launch_overhead_s", real(gpu.launch_overhead.value)},
          {"sources", sources}};
}

/// A predicted speed-up takes the predicted times of both.
std::string reason_not_predicted(const RunResult& r, const Comparison& c) {
  const AlgorithmResult* of = r.find(c.of);
  return of->predicted ? r.find(c.to)->predicted.reason : of->predicted.reason;
}

/// A measured one takes the times of both.
std::string reason_without_time(const RunResult& r, const Comparison& c) {
  for (const std::string_view algorithm : {c.of, c.to}) {
    const Known<PipelineMeasurement>& measured = r.find(algorithm)->measured;
    if (!measured) return measured.reason;
    if (!measured->time) return measured->time.reason;
  }
  return {};
}

Json paper_json(const RunResult& r) {
  const PaperClaims p = r.paper ? *r.paper : PaperClaims{};
  Json out = {{"sram_bytes", p.sram_bytes.value()},
              {"sram_elements", real(p.sram_elements)},
              {"standard", standard_order(r.request.shape)},
              {"flash", r.request.shape.seqlen_q == r.request.shape.seqlen_kv ? "N^2 d^2 / M" : "Nq Nk d^2 / M"},
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

void run_json::write_shape(JsonText& to, const RunResult& r) {
  write_shape_members(to, r.request.shape);
  to.member("pass", r.request.pass);
  to.member("live_pairs", r.live_pairs.value());
}

void write_run_row(JsonText& to, const RunResult& r) {
  to.key("shape");
  to.begin_object();
  write_shape(to, r);
  to.end_object();
  to.key("gpu");
  to.begin_object();
  to.member("name", r.request.gpu.name);
  to.end_object();
  to.key("algorithms");
  to.begin_list();
  for (const AlgorithmResult& a : r.algorithms) write_algorithm_row(to, a);
  to.end_list();
}

nlohmann::ordered_json run_to_json(const RunResult& r, const std::vector<std::string>& argv) {
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["meta"] = {{"tool", "hbmscope"},
                 {"version", hbmscope_version()},
                 {"git", hbmscope_git_revision()},
                 {"argv", argv},
                 {"gpu_driver", r.measured ? Json(r.measured->device.driver) : Json(nullptr)},
                 {"gpu_driver_reason", r.measured ? Json(nullptr) : Json(r.measured.reason)},
                 {"device", r.device.present ? Json(r.device.name) : Json(nullptr)},
                 {"device_reason", r.device.present ? Json(nullptr) : Json(r.device.reason)},
                 {"seed", r.request.seed}};
  out["shape"] = object_of([&](JsonText& to) { write_shape(to, r); });
  out["gpu"] = gpu_json(r);
  out["device"] = device_json(r);
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
         {"speedup_measured", c.speedup_measured ? real(*c.speedup_measured) : Json(nullptr)},
         {"measured_reason", c.speedup_measured ? Json(nullptr) : Json(reason_without_time(r, c))}});
  }
  out["amdahl"] = amdahl_json(r);
  out["warnings"] = r.warnings;
  out["notes"] = r.notes;
  return out;
}

}  // namespace hbmscope
