#include "report/probe_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/version.hpp"
#include "report/format.hpp"
#include "report/run_json_parts.hpp"

namespace hbmscope {
namespace {

using run_json::Json;

std::string rate_words(const Roof& roof) {
  if (roof.unit == "byte_per_s") return text::byte_rate({*roof.rate});
  if (roof.unit == "flop_per_s") return text::flop_rate({*roof.rate});
  return fmt::format("{:.2f} T/s", *roof.rate / 1e12);
}

/// The datasheet's value for the same thing.
std::optional<double> datasheet_rate(const Roof& roof, const GpuSpec* gpu) {
  if (gpu == nullptr) return std::nullopt;
  if (roof.name == "copy" || roof.name == "read" || roof.name == "write") return gpu->hbm_bandwidth.value;
  const auto& bf16 = gpu->peak[static_cast<std::size_t>(Dtype::bf16)];
  if ((roof.name == "mma_sync" || roof.name == "wgmma") && bf16) return bf16->value;
  return std::nullopt;
}

std::string_view what(std::string_view name) {
  if (name == "copy") return "HBM to HBM, bytes read and written";
  if (name == "read") return "HBM to SMs";
  if (name == "write") return "SMs to HBM";
  if (name == "l2_read") return "L2 to SMs, 16 MiB over and over";
  if (name == "mma_sync") return "bf16 tensor cores, mma.sync m16n8k16 from registers";
  if (name == "wgmma") return "bf16 tensor cores, wgmma m64n256k16 from SMEM";
  return "exponentials (ex2) on the special function units";
}

}  // namespace

Document probe_document(const ProbeResult& r, const GpuSpec* datasheet) {
  Document out;
  out.push_back(Paragraph{fmt::format("hbmscope {}   gpu probe   {}, driver {}, CUDA {}", hbmscope_version(),
                                      r.device.name, r.device.driver, r.device.runtime)});
  Table t{"Measured roofs", {{"", false}, {"measured"}, {"spread"}, {"of datasheet"}, {"", false}}, {}, {}};
  for (const Roof& roof : r.roofs) {
    if (!roof.rate) {
      t.rows.push_back({std::string(roof.name), "-", "-", "-", std::string(what(roof.name))});
      t.notes.push_back(fmt::format("{}: {}: {}.", roof.name, name(roof.rate.status), roof.rate.reason));
      continue;
    }
    const std::optional<double> sheet = datasheet_rate(roof, datasheet);
    t.rows.push_back({std::string(roof.name), rate_words(roof), text::percent(roof.spread),
                      sheet ? text::percent(*roof.rate / *sheet) : "-", std::string(what(roof.name))});
  }
  if (r.clocks.sm_hz) {
    std::string limits;
    for (const std::string& limit : r.clocks.throttled_by) limits += (limits.empty() ? "" : ", ") + limit;
    t.notes.push_back(fmt::format("SM clock {:.0f} MHz after the last; held back by: {}.", *r.clocks.sm_hz / 1e6,
                                  limits.empty() ? "nothing" : limits));
  } else {
    t.notes.push_back(fmt::format("clocks: {}.", r.clocks.reason));
  }
  if (r.sm_clocks) {
    const auto [least, most] = std::minmax_element(r.sm_clocks->begin(), r.sm_clocks->end());
    t.notes.push_back(fmt::format("SMs in the first milliseconds of tensor work: {:.0f} to {:.0f} MHz, {} apart.",
                                  *least / 1e6, *most / 1e6, text::percent(*most / *least - 1)));
  } else {
    t.notes.push_back(fmt::format("clocks of the SMs: {}.", r.sm_clocks.reason));
  }
  out.push_back(std::move(t));

  if (!r.counters) {
    out.push_back(Labelled{"Counters", r.counters.reason});
    return out;
  }
  Table c{
      "Counters against kernels of known bytes", {{"", false}, {"read"}, {"counted"}, {"write"}, {"counted"}}, {}, {}};
  for (const CounterCheck::Row& row : r.counters->rows) {
    const auto factor = [](const Known<Bytes>& counted, Bytes expected) {
      return counted && expected.value() > 0 ? fmt::format("x {:.4f}", counted->as_double() / expected.as_double())
                                             : std::string("-");
    };
    c.rows.push_back({std::string(name(row.yardstick)), text::bytes(row.expected_read),
                      factor(row.counted.read, row.expected_read), text::bytes(row.expected_write),
                      factor(row.counted.write, row.expected_write)});
  }
  c.notes.push_back(r.counters.status == Status::failed ? "FAILED: " + r.counters.reason + "."
                                                        : "within 1 % on reads; factors are printed, never applied.");
  out.push_back(std::move(c));
  return out;
}

nlohmann::ordered_json probe_to_json(const ProbeResult& r, const GpuSpec* datasheet,
                                     const std::vector<std::string>& argv) {
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["meta"] = {
      {"tool", "hbmscope"},   {"version", hbmscope_version()}, {"git", hbmscope_git_revision()},  {"argv", argv},
      {"gpu", r.device.name}, {"gpu_driver", r.device.driver}, {"cuda_runtime", r.device.runtime}};
  out["roofs"] = Json::array();
  for (const Roof& roof : r.roofs) {
    const std::optional<double> sheet = datasheet_rate(roof, datasheet);
    Json one = {{"name", roof.name},
                {"unit", roof.unit},
                {"rate", roof.rate ? run_json::real(*roof.rate) : Json(nullptr)},
                {"spread", run_json::real(roof.spread)},
                {"datasheet", sheet ? run_json::real(*sheet) : Json(nullptr)},
                {"datasheet_reason", run_json::because(sheet.has_value(), "no datasheet states it")}};
    run_json::add_status(one, roof.rate);
    out["roofs"].push_back(one);
  }
  out["clocks"] = run_json::clocks_json(r.clocks);
  Json clocks = nullptr;
  if (r.sm_clocks) {
    clocks = Json::array();
    for (const double hz : *r.sm_clocks) clocks.push_back(std::llround(hz));
  }
  out["sm_clock_hz"] = clocks;
  out["sm_clock_reason"] = run_json::because(static_cast<bool>(r.sm_clocks), r.sm_clocks.reason);
  out["counters"] = run_json::counters_json(r.counters);
  return out;
}

}  // namespace hbmscope
