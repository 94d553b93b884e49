#include "report/run_json_parts.hpp"
#include "scenario/batch_line.hpp"

namespace hbmscope::run_json {
namespace {

Json bytes_json(const Known<Bytes>& bytes) {
  return bytes ? Json(bytes->value()) : Json(nullptr);
}

/// The first reason among values that are missing.
std::string first_reason(std::initializer_list<const Known<Bytes>*> values) {
  for (const Known<Bytes>* value : values) {
    if (!*value) return value->reason;
  }
  return {};
}

Json pipeline_json(const RunResult& r, const PipelineMeasurement& p) {
  Json out = {{"name", p.pipeline->name}, {"algorithm", p.pipeline->algorithm}, {"source", p.pipeline->source}};
  out["plan"] = plan_to_json(p.plan, algorithm(p.pipeline->algorithm).plan_keys);
  Json& check = out["verified"];
  add_status(check, p.exactness);
  check["max_abs_error"] = p.exactness ? real(p.exactness->exactness.max_abs_error) : Json(nullptr);
  check["tolerance"] = p.exactness ? real(p.exactness->exactness.tolerance) : Json(nullptr);
  check["naive_max_abs_error"] = p.exactness ? real(p.exactness->exactness.naive_max_abs_error) : Json(nullptr);
  check["rows_checked"] = p.exactness ? Json(p.exactness->exactness.rows_checked) : Json(nullptr);
  check["bit_identical"] = p.bit_identical ? Json(*p.bit_identical) : Json(nullptr);
  Json& time = out["time"];
  add_status(time, p.time);
  time["measured_median_s"] = p.time ? real(p.time->median) : Json(nullptr);
  time["measured_spread"] = p.time ? real(p.time->spread) : Json(nullptr);
  const Flop flops = algorithm(p.pipeline->algorithm).flops(r.request.shape, p.plan).matmul;
  out["achieved_flop_per_s"] = p.time ? real((flops / Seconds{p.time->median}).value) : Json(nullptr);
  out["hw"] = hw_json(p.hw);
  out["stages"] = Json::array();
  for (const StageMeasurement& s : p.stages) {
    out["stages"].push_back({{"name", s.name},
                             {"measured_median_s", s.median ? real(s.median->value) : Json(nullptr)},
                             {"reason", s.median ? Json(nullptr) : Json(s.median.reason)},
                             {"kernel", resources_json(s.resources)},
                             {"hw", hw_json(s.hw)}});
  }
  return out;
}

}  // namespace

Json resources_json(const Known<kernels::KernelResources>& known) {
  return {{"registers", known ? Json(known->registers) : Json(nullptr)},
          {"smem_bytes", known ? Json(known->smem_bytes) : Json(nullptr)},
          {"local_bytes", known ? Json(known->local_bytes) : Json(nullptr)},
          {"reason", known ? Json(nullptr) : Json(known.reason)}};
}

void write_clocks(JsonText& to, const ClockState& c) {
  to.member("sm_hz", c.sm_hz);
  to.member("memory_hz", c.memory_hz);
  to.key("throttled_by");
  to.begin_list();
  for (const std::string& what : c.throttled_by) to.value(what);
  to.end_list();
  text_or_null(to, "reason", c.reason);
}

Json clocks_json(const ClockState& c) {
  return object_of([&](JsonText& to) { write_clocks(to, c); });
}

Json counters_json(const Known<CounterCheck>& known) {
  Json out;
  add_status(out, known);
  if (!known) return out;
  out["chip"] = known->metrics.chip;
  out["baseline_read_bytes"] = known->baseline_read.value();
  out["baseline_write_bytes"] = known->baseline_write.value();
  Json metrics = Json::object(), rows = Json::array();
  for (const HwQuantity q : kHwQuantities) metrics[std::string(hw_quantity_name(q))] = known->metrics.metric[q];
  for (const CounterCheck::Row& row : known->rows) {
    const auto factor = [](const Known<Bytes>& counted, Bytes expected) {
      return counted && expected.value() > 0 ? real(counted->as_double() / expected.as_double()) : Json(nullptr);
    };
    rows.push_back({{"kernel", name(row.yardstick)},
                    {"expected_read_bytes", row.expected_read.value()},
                    {"expected_write_bytes", row.expected_write.value()},
                    {"read_bytes", bytes_json(row.counted.read)},
                    {"write_bytes", bytes_json(row.counted.write)},
                    {"read_factor", factor(row.counted.read, row.expected_read)},
                    {"write_factor", factor(row.counted.write, row.expected_write)}});
  }
  out["metrics"] = metrics;
  out["known_kernels"] = rows;
  return out;
}

Json hw_json(const HwStage& hw) {
  const std::string reason =
      first_reason({&hw.sm_l2.read, &hw.sm_l2.write, &hw.l2_hbm.read, &hw.l2_hbm.write, &hw.l2_lookup});
  return {{"sm_l2_read_bytes", bytes_json(hw.sm_l2.read)},
          {"sm_l2_write_bytes", bytes_json(hw.sm_l2.write)},
          {"l2_hbm_read_bytes", bytes_json(hw.l2_hbm.read)},
          {"l2_hbm_write_bytes", bytes_json(hw.l2_hbm.write)},
          {"l2_lookup_bytes", bytes_json(hw.l2_lookup)},
          {"tensor_instructions", hw.tensor_instructions ? Json(hw.tensor_instructions->value()) : Json(nullptr)},
          {"gpu_time_s", hw.gpu_time ? real(hw.gpu_time->value) : Json(nullptr)},
          {"sm_clock_least_hz", hw.sm_clock_least ? real(*hw.sm_clock_least) : Json(nullptr)},
          {"sm_clock_most_hz", hw.sm_clock_most ? real(*hw.sm_clock_most) : Json(nullptr)},
          {"reason", reason.empty() ? Json(nullptr) : Json(reason)}};
}

Json device_json(const RunResult& r) {
  Json out;
  add_status(out, r.measured);
  if (!r.measured) return out;
  const DeviceProperties& d = r.measured->device;
  out["name"] = d.name;
  out["compute_capability"] = std::to_string(d.compute_major) + "." + std::to_string(d.compute_minor);
  out["num_sms"] = d.num_sms;
  out["l2_bytes"] = d.l2.value();
  out["memory_bytes"] = d.memory.value();
  out["driver"] = d.driver;
  out["cuda_runtime"] = d.runtime;
  out["counters"] = counters_json(r.measured->counters);
  out["pipelines"] = Json::array();
  for (const PipelineMeasurement& p : r.measured->pipelines) out["pipelines"].push_back(pipeline_json(r, p));
  return out;
}

}  // namespace hbmscope::run_json
