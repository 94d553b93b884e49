#include "report/gpu_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/version.hpp"
#include "report/format.hpp"
#include "report/run_json.hpp"

namespace hbmscope {
namespace {

using Json = nlohmann::ordered_json;

const std::optional<FlopPerSecond>& peak(const GpuSpec& gpu, Dtype dtype) {
  return gpu.peak[static_cast<std::size_t>(dtype)];
}

/// Rate of the 16-bit dtype that models are trained in: bf16, or fp16 where the GPU has no bf16.
std::optional<FlopPerSecond> peak_16_bit(const GpuSpec& gpu) {
  return peak(gpu, Dtype::bf16) ? peak(gpu, Dtype::bf16) : peak(gpu, Dtype::fp16);
}

std::string in_tera(const std::optional<FlopPerSecond>& rate) {
  return rate ? text::significant(rate->value / 1e12, 4) : "-";
}

std::string ridge(const std::optional<FlopPerSecond>& rate, const GpuSpec& gpu) {
  return rate ? text::intensity(*rate / gpu.hbm_bandwidth) : "-";
}

bool is_assumed(const Source& source) {
  return source.title.starts_with("assumed");
}

/// The different sources of a GPU, in the order in which its values name them.
class SourceList {
 public:
  explicit SourceList(const GpuSpec& gpu) : gpu_(&gpu) {}

  /// The number of a value's source, from 1.
  std::size_t number(const std::string& key) {
    const Source& wanted = gpu_->sources.at(key);
    const auto same = [&](const Source& s) { return s.title == wanted.title && s.date == wanted.date; };
    const auto found = std::find_if(sources_.begin(), sources_.end(), same);
    if (found != sources_.end()) return static_cast<std::size_t>(found - sources_.begin()) + 1;
    sources_.push_back(wanted);
    return sources_.size();
  }
  [[nodiscard]] const std::vector<Source>& all() const { return sources_; }

 private:
  const GpuSpec* gpu_;
  std::vector<Source> sources_;
};

/// What a reader should know of a value that no document gives.
std::string mark_of(const GpuSpec& gpu, const std::string& key) {
  if (is_assumed(gpu.sources.at(key))) return "assumed";
  const bool of_probe = key.starts_with("measured_roofs.") || key == "sm_clock_hz";
  if (of_probe) return gpu.sources.at(key).title.starts_with("given in") ? "" : "measured";
  if (key != "l2_effective_bytes" || gpu.l2_effective_provenance == Provenance::quoted) return "";
  return gpu.l2_effective_provenance == Provenance::hw_counter ? "measured (hw_counter)"
                                                               : std::string(name(gpu.l2_effective_provenance));
}

struct Row {
  std::string label;
  std::string value;
  std::string key;  ///< of its source
};

std::string exact_bytes(Bytes b) {
  return fmt::format("{} ({} B)", text::binary_bytes(b), text::integer(b.value()));
}

std::vector<Row> rows_of(const GpuSpec& gpu) {
  std::vector<Row> rows{
      {"SMs", text::integer(gpu.num_sms), "num_sms"},
      {"L2", exact_bytes(gpu.l2_bytes), "l2_bytes"},
      {"effective L2", exact_bytes(gpu.l2_effective_bytes), "l2_effective_bytes"},
      {"SMEM per CTA", exact_bytes(gpu.smem_per_block_bytes), "smem_per_block_bytes"},
      {"SMEM per SM", exact_bytes(gpu.smem_per_sm_bytes), "smem_per_sm_bytes"},
      {"registers per SM", exact_bytes(gpu.registers_per_sm_bytes), "registers_per_sm_bytes"},
      {"HBM", text::bytes(gpu.hbm_bytes), "hbm_bytes"},
      {"HBM bandwidth", text::byte_rate(gpu.hbm_bandwidth), "hbm_bandwidth_bytes_per_s"},
  };
  for (const DtypeInfo& dtype : kDtypes) {
    const std::string label = fmt::format("{} rate, dense", dtype.name);
    const auto& rate = peak(gpu, dtype.dtype);
    if (rate) {
      rows.push_back({label, text::flop_rate(*rate), fmt::format("peak_flop_per_s.{}", dtype.name)});
    } else {
      rows.push_back({label, "- not supported", ""});
    }
  }
  rows.push_back({"kernel launch", text::seconds(gpu.launch_overhead), "launch_overhead_s"});
  if (!gpu.sm_clocks.empty()) {
    const auto [least, most] = std::minmax_element(gpu.sm_clocks.begin(), gpu.sm_clocks.end());
    rows.push_back({"SM clocks", fmt::format("{:.0f} to {:.0f} MHz", *least / 1e6, *most / 1e6), "sm_clock_hz"});
  }
  for (const GpuRoof& roof : gpu.measured_roofs) {
    rows.push_back({roof.label + " roof", text::roof_rate(roof),
                    fmt::format("measured_roofs.{}", find_roof_kind(roof.name)->key)});
  }
  return rows;
}

}  // namespace

Document gpu_list_document(std::span<const GpuSpec> gpus) {
  Table t{"",
          {{"GPU", false}, {"SMs"}, {"L2"}, {"eff. L2"}, {"SMEM/CTA"}, {"HBM"}, {"fp16"}, {"bf16"}, {"fp8"}, {"ridge"}},
          {},
          {}};
  for (const GpuSpec& gpu : gpus) {
    t.rows.push_back({gpu.name, text::integer(gpu.num_sms), text::binary_bytes(gpu.l2_bytes),
                      text::binary_bytes(gpu.l2_effective_bytes), text::binary_bytes(gpu.smem_per_block_bytes),
                      text::byte_rate(gpu.hbm_bandwidth), in_tera(peak(gpu, Dtype::fp16)),
                      in_tera(peak(gpu, Dtype::bf16)), in_tera(peak(gpu, Dtype::fp8)), ridge(peak_16_bit(gpu), gpu)});
  }
  t.notes = {
      "fp16, bf16, fp8: dense matmul rates with fp32 accumulation in TFLOP/s; - the GPU has no such rate.",
      "ridge: FLOP/B at which bf16 (fp16 where there is no bf16) and HBM take equally long.",
      "eff. L2: what a stream that all SMs read finds of the L2; hbmscope gpu show NAME says why, and where every "
      "figure comes from.",
  };
  return {t};
}

Json gpu_list_to_json(std::span<const GpuSpec> gpus, const std::vector<std::string>& argv) {
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["meta"] = {
      {"tool", "hbmscope"}, {"version", hbmscope_version()}, {"git", hbmscope_git_revision()}, {"argv", argv}};
  out["gpus"] = Json::array();
  for (const GpuSpec& gpu : gpus) {
    Json one{{"name", gpu.name},
             {"num_sms", gpu.num_sms},
             {"l2_bytes", gpu.l2_bytes.value()},
             {"l2_effective_bytes", gpu.l2_effective_bytes.value()},
             {"l2_effective_provenance", name(gpu.l2_effective_provenance)},
             {"smem_per_block_bytes", gpu.smem_per_block_bytes.value()},
             {"hbm_bandwidth_bytes_per_s", gpu.hbm_bandwidth.value}};
    for (const DtypeInfo& dtype : kDtypes) {
      const auto& rate = peak(gpu, dtype.dtype);
      const std::string key(dtype.name);
      one["peak_flop_per_s"][key] = rate ? Json(rate->value) : Json(nullptr);
      one["ridge_flop_per_byte"][key] = rate ? Json((*rate / gpu.hbm_bandwidth).value) : Json(nullptr);
    }
    out["gpus"].push_back(one);
  }
  out["reason"] = "null: the GPU has no dense matmul rate of that dtype";
  return out;
}

Document gpu_document(const GpuSpec& gpu) {
  std::string aliases;
  for (const std::string& alias : gpu.aliases) aliases += (aliases.empty() ? "; also called " : ", ") + alias;
  Document document{Paragraph{gpu.name + ": " + gpu.architecture + aliases, true}};

  Table t{"", {{"", false}, {"value", false}, {"source"}, {"", false}}, {}, {}};
  SourceList sources(gpu);
  for (const Row& row : rows_of(gpu)) {
    if (row.key.empty()) {
      t.rows.push_back({row.label, row.value, "", ""});
      continue;
    }
    t.rows.push_back({row.label, row.value, fmt::format("[{}]", sources.number(row.key)), mark_of(gpu, row.key)});
  }
  if (const auto rate = peak_16_bit(gpu)) {
    t.rows.push_back({"ridge", ridge(rate, gpu) + " FLOP/B", "", "computed"});
    t.notes.emplace_back("ridge: the rate of bf16 (fp16 where there is no bf16) over the HBM bandwidth");
  }
  for (std::size_t i = 0; i < sources.all().size(); ++i) {
    const Source& s = sources.all()[i];
    t.notes.push_back(fmt::format("[{}] {}{}", i + 1, s.title, s.date.empty() ? ", undated" : ", " + s.date));
  }
  document.emplace_back(t);
  document.emplace_back(Labelled{"Why that L2", gpu.l2_effective_reason});
  return document;
}

Json gpu_to_json(const GpuSpec& gpu) {
  SourceList sources(gpu);
  const auto sourced = [&](auto value, const std::string& key) {
    return Json{{"value", value}, {"source", fmt::format("s{}", sources.number(key))}};
  };
  Json out;
  out["name"] = gpu.name;
  out["aliases"] = gpu.aliases;
  out["architecture"] = gpu.architecture;
  out["num_sms"] = sourced(gpu.num_sms, "num_sms");
  out["l2_bytes"] = sourced(gpu.l2_bytes.value(), "l2_bytes");
  out["l2_effective_bytes"] = sourced(gpu.l2_effective_bytes.value(), "l2_effective_bytes");
  out["l2_effective_reason"] = gpu.l2_effective_reason;
  out["l2_effective_provenance"] = name(gpu.l2_effective_provenance);
  out["smem_per_block_bytes"] = sourced(gpu.smem_per_block_bytes.value(), "smem_per_block_bytes");
  out["smem_per_sm_bytes"] = sourced(gpu.smem_per_sm_bytes.value(), "smem_per_sm_bytes");
  out["registers_per_sm_bytes"] = sourced(gpu.registers_per_sm_bytes.value(), "registers_per_sm_bytes");
  out["hbm_bytes"] = sourced(gpu.hbm_bytes.value(), "hbm_bytes");
  out["hbm_bandwidth_bytes_per_s"] = sourced(gpu.hbm_bandwidth.value, "hbm_bandwidth_bytes_per_s");
  for (const DtypeInfo& dtype : kDtypes) {
    const auto& rate = peak(gpu, dtype.dtype);
    const std::string key(dtype.name);
    out["peak_flop_per_s"][key] = rate ? sourced(rate->value, "peak_flop_per_s." + key) : Json(nullptr);
  }
  out["launch_overhead_s"] = sourced(gpu.launch_overhead.value, "launch_overhead_s");
  for (const GpuRoof& roof : gpu.measured_roofs) {
    const std::string key(find_roof_kind(roof.name)->key);
    out["measured_roofs"][key] = sourced(roof.rate, "measured_roofs." + key);
  }
  if (!gpu.sm_clocks.empty()) {
    Json clocks = Json::array();
    for (const double hz : gpu.sm_clocks) clocks.push_back(static_cast<std::int64_t>(hz));
    out["sm_clock_hz"] = sourced(clocks, "sm_clock_hz");
  }
  for (std::size_t i = 0; i < sources.all().size(); ++i) {
    Json& entry = out["sources"][fmt::format("s{}", i + 1)];
    entry["title"] = sources.all()[i].title;
    if (!sources.all()[i].date.empty()) entry["date"] = sources.all()[i].date;
  }
  return out;
}

}  // namespace hbmscope
