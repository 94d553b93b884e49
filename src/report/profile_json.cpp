#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/csv.hpp"
#include "core/version.hpp"
#include "report/profile_report.hpp"
#include "report/run_csv.hpp"
#include "report/run_json.hpp"

namespace hbmscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNoTensors = "hardware counters do not tell tensors apart";
constexpr const char* kUnderNcu =
    "gpu__time_duration.sum under ncu, which holds the clocks unless --clock-control none";
constexpr const char* kNoInterval = "no pace of CTAs enters, one alone was simulated, or this is one kernel of several";
constexpr const char* kNothingBeside = "no --algorithm was given to predict anything with";

Json real_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
Json bytes_or_null(const Known<Bytes>& bytes) {
  return bytes ? Json(bytes->value()) : Json(nullptr);
}
Json ratio_or_null(const std::optional<double>& ratio) {
  return ratio ? real_or_null(*ratio) : Json(nullptr);
}
Json sides_or_null(const std::optional<std::array<std::int64_t, 3>>& sides) {
  return sides ? Json(*sides) : Json(nullptr);
}

/// Why a traffic has no total; empty where it has one.
std::string missing_words(const CountedTraffic& traffic) {
  std::string words;
  if (!traffic.read.bytes) words += "read: " + traffic.read.bytes.reason;
  if (!traffic.write.bytes) words += (words.empty() ? "write: " : "; write: ") + traffic.write.bytes.reason;
  return words;
}

/// An entry of `traffic` like those of `run`. Where only one direction was counted it still stands, and status and
/// reason are those of the other.
Json entry_json(Boundary boundary, const CountedTraffic& traffic, const Json& launches) {
  const Known<Bytes> total = traffic.total();
  return {{"boundary", name(boundary)},
          {"provenance", name(Provenance::hw_counter)},
          {"plan", Json::object()},
          {"status", name(total.status)},
          {"reason", total ? std::string(kNoTensors) : missing_words(traffic)},
          {"read_bytes", bytes_or_null(traffic.read.bytes)},
          {"write_bytes", bytes_or_null(traffic.write.bytes)},
          {"total_bytes", bytes_or_null(total)},
          {"tensors", total ? Json::object() : Json(nullptr)},
          {"formula", nullptr},
          {"formula_exact", false},
          {"launches", launches},
          {"metrics", {{"read", text_or_null(traffic.read.metric)}, {"write", text_or_null(traffic.write.metric)}}},
          {"rounded_to_bytes", real_or_null(std::max({1.0, traffic.read.step, traffic.write.step}))}};
}

template <class T>
Json measured(const Known<T>& known, const char* key, const Json& value) {
  return {{key, known ? value : Json(nullptr)}, {"status", name(known.status)}, {"reason", text_or_null(known.reason)}};
}

Json metrics_json(const NcuKernel& kernel) {
  Json out = Json::object();
  for (const auto& [metric, value] : kernel.metrics) {
    Json number = nullptr;
    if (value.exact) {
      number = *value.exact;
    } else if (value.value) {
      number = real_or_null(*value.value);
    }
    out[metric] = {{"value", number},
                   {"unit", value.unit},
                   {"status", name(value.value ? Status::ok : Status::failed)},
                   {"reason", text_or_null(value.trouble)}};
  }
  return out;
}

Json launch_json(const CountedLaunch& launch) {
  const NcuKernel& k = launch.kernel;
  const Json id = Json::array({k.id});
  Json out = {{"id", k.id},
              {"process", k.process},
              {"name", k.name},
              {"stage", launch.stage.empty() ? Json(nullptr) : Json(launch.stage)},
              {"grid", sides_or_null(k.grid)},
              {"block", sides_or_null(k.block)},
              {"device", text_or_null(k.device)},
              {"compute_capability", text_or_null(k.compute_capability)}};
  out["traffic"] =
      Json::array({entry_json(Boundary::l2_hbm, launch.hbm, id), entry_json(Boundary::sm_l2, launch.sm, id)});
  out["l2_lookup"] = measured(launch.l2_lookup.bytes, "read_bytes", bytes_or_null(launch.l2_lookup.bytes));
  out["l2_lookup"]["metric"] = text_or_null(launch.l2_lookup.metric);
  out["time"] = measured(launch.time, "measured_s", launch.time ? real_or_null(launch.time->value) : Json(nullptr));
  out["tensor_instructions"] =
      measured(launch.tensor_instructions, "warp_instructions",
               launch.tensor_instructions ? Json(launch.tensor_instructions->value()) : Json(nullptr));
  out["tensor_instructions"]["metric"] = text_or_null(launch.tensor_metric);
  out["metrics"] = metrics_json(k);
  return out;
}

Json row_json(const LaunchComparison& c, const ComparisonRow& row) {
  const CountedTraffic& counted = row.counted == Boundary::l2_hbm ? c.hbm : c.sm;
  const auto direction = [&](const Known<Bytes>& bytes, const auto& predicted, const std::optional<double>& ratio) {
    return Json{{"counted_bytes", bytes_or_null(bytes)},
                {"predicted_bytes", row.bytes ? Json(predicted(*row.bytes).value()) : Json(nullptr)},
                {"counted_over_predicted", ratio_or_null(ratio)}};
  };
  std::string reason = row.bytes ? missing_words(counted) : row.bytes.reason;
  if (reason.empty() && !(row.read_ratio && row.write_ratio)) reason = "there is no ratio to 0 bytes";
  return {{"boundary", name(row.counted)},
          {"against", {{"boundary", name(row.predicted)}, {"provenance", name(row.provenance)}}},
          {"status", name(row.bytes ? counted.total().status : row.bytes.status)},
          {"reason", text_or_null(reason)},
          {"read", direction(
                       counted.read.bytes, [](const ReadWrite& b) { return b.read; }, row.read_ratio)},
          {"write", direction(
                        counted.write.bytes, [](const ReadWrite& b) { return b.write; }, row.write_ratio)},
          {"total", direction(
                        counted.total(), [](const ReadWrite& b) { return b.total(); }, row.total_ratio)},
          {"least_total_bytes", row.least_total ? Json(row.least_total->value()) : Json(nullptr)},
          {"most_total_bytes", row.most_total ? Json(row.most_total->value()) : Json(nullptr)},
          {"interval_reason", row.least_total ? Json(nullptr) : Json(kNoInterval)}};
}

Json launch_ids(const ProfileImport& p, const LaunchComparison& c) {
  Json ids = Json::array();
  for (const std::size_t launch : c.launches) ids.push_back(p.launches[launch].kernel.id);
  return ids;
}

Json comparison_json(const ProfileImport& p, const LaunchComparison& c) {
  Json rows = Json::array(), differences = Json::array();
  for (const ComparisonRow& row : c.rows) rows.push_back(row_json(c, row));
  for (const Difference& d : c.differences) {
    differences.push_back({{"kind", name(d.kind)},
                           {"boundary", name(d.boundary)},
                           {"direction", d.write ? "write" : "read"},
                           {"bytes", d.bytes.value()},
                           {"of_bytes", d.of.value()},
                           {"of_provenance", name(d.of_provenance)}});
  }
  return {{"stage", c.stage}, {"launches", launch_ids(p, c)}, {"rows", rows}, {"differences", differences}};
}

void add_time(Json& to, const Known<Seconds>& time, const Json& samples) {
  to["measured_median_s"] = time ? real_or_null(time->value) : Json(nullptr);
  to["samples_s"] = time ? samples : Json::array();
  to["status"] = name(time.status);
  to["reason"] = time ? std::string(kUnderNcu) : time.reason;
}

/// Puts the counters among the traffic and times of the algorithm and its stages.
void add_counters(Json& algorithm, const ProfileImport& p) {
  const bool one_stage = algorithm["stages"].size() == 1;
  Json samples = Json::array();
  for (std::size_t i = 0; i < p.launches.size(); ++i) {
    const Known<Seconds>& time = p.launches[i].time;
    if (!time) continue;
    samples.push_back(real_or_null(time->value));
    if (!one_stage) add_time(algorithm["stages"][i]["time"], time, Json::array({real_or_null(time->value)}));
  }
  if (one_stage) add_time(algorithm["stages"][0]["time"], p.time, samples);
  add_time(algorithm["time"], p.time,
           one_stage ? samples : Json::array({p.time ? real_or_null(p.time->value) : Json(nullptr)}));
  for (const LaunchComparison& c : p.comparisons) {
    const Json ids = launch_ids(p, c);
    std::vector<Json*> places;
    if (one_stage || c.stage == "all") places.push_back(&algorithm["traffic"]);
    for (Json& stage : algorithm["stages"]) {
      if (stage["name"] == c.stage) places.push_back(&stage["traffic"]);
    }
    for (Json* place : places) {
      place->push_back(entry_json(Boundary::l2_hbm, c.hbm, ids));
      place->push_back(entry_json(Boundary::sm_l2, c.sm, ids));
    }
  }
}

class CsvRows {
 public:
  explicit CsvRows(const ProfileImport& p) : p_(p) {
    out_ = fmt::format(
        "source,launch,kernel,stage,algorithm,{},boundary,against,provenance,status,reason,read_bytes,write_bytes,"
        "total_bytes,counted_over_predicted_read,counted_over_predicted_write,counted_over_predicted_total,time_s,"
        "tensor_instructions\n",
        kPlanColumns);
  }

  std::string write() {
    for (const CountedLaunch& launch : p_.launches) counters(launch);
    for (const LaunchComparison& c : p_.comparisons) {
      for (const ComparisonRow& row : c.rows) predicted(c, row);
    }
    return std::move(out_);
  }

 private:
  template <class T>
  static std::string cell(const std::optional<T>& value) {
    return value ? fmt::format("{}", *value) : std::string();
  }
  static std::string cell(const Known<Bytes>& bytes) {
    return bytes ? fmt::format("{}", bytes->value()) : std::string();
  }
  [[nodiscard]] std::string algorithm() const {
    if (!p_.beside) return ",,,,";
    const AlgorithmResult& a = *p_.algorithm();
    return fmt::format("{},{}", a.algorithm->name, plan_cells(*a.algorithm, a.plan));
  }
  [[nodiscard]] std::string who(const std::string& launches, std::string_view kernel, std::string_view stage) const {
    return fmt::format("{},{},{},{},{}", csv_field(p_.source), launches, csv_field(kernel), stage, algorithm());
  }

  void counters(const CountedLaunch& launch) {
    const std::string head = who(std::to_string(launch.kernel.id), launch.kernel.name, launch.stage);
    const std::string tail = fmt::format(
        "{},{}", launch.time ? fmt::format("{}", launch.time->value) : std::string(),
        launch.tensor_instructions ? fmt::format("{}", launch.tensor_instructions->value()) : std::string());
    const auto row = [&](std::string_view boundary, const Known<Bytes>& all, const std::string& reason,
                         const Known<Bytes>& read, const Known<Bytes>& write, const Known<Bytes>& total) {
      out_ += fmt::format("{},{},,{},{},{},{},{},{},,,,{}\n", head, boundary, name(Provenance::hw_counter),
                          name(all.status), csv_field(reason), cell(read), cell(write), cell(total), tail);
    };
    for (const auto& [boundary, traffic] :
         {std::pair{Boundary::l2_hbm, &launch.hbm}, std::pair{Boundary::sm_l2, &launch.sm}}) {
      row(name(boundary), traffic->total(), missing_words(*traffic), traffic->read.bytes, traffic->write.bytes,
          traffic->total());
    }
    const Known<Bytes> none = Known<Bytes>::missing(Status::unsupported, {});
    row("l2_lookup", launch.l2_lookup.bytes, launch.l2_lookup.bytes.reason, launch.l2_lookup.bytes, none, none);
  }

  void predicted(const LaunchComparison& c, const ComparisonRow& row) {
    std::string launches;
    for (const std::size_t launch : c.launches)
      launches += (launches.empty() ? "" : " ") + std::to_string(p_.launches[launch].kernel.id);
    const std::string kernel = c.launches.size() == 1 ? p_.launches[c.launches[0]].kernel.name : std::string();
    const auto number = [&](Bytes bytes) { return row.bytes ? fmt::format("{}", bytes.value()) : std::string(); };
    const ReadWrite bytes = row.bytes ? *row.bytes : ReadWrite{};
    out_ += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},,\n", who(launches, kernel, c.stage), name(row.counted),
                        name(row.predicted), name(row.provenance), name(row.bytes.status), csv_field(row.bytes.reason),
                        number(bytes.read), number(bytes.write), number(bytes.total()), cell(row.read_ratio),
                        cell(row.write_ratio), cell(row.total_ratio));
  }

  const ProfileImport& p_;
  std::string out_;
};

}  // namespace

Json profile_to_json(const ProfileImport& p, const std::vector<std::string>& argv) {
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["meta"] = {
      {"tool", "hbmscope"}, {"version", hbmscope_version()}, {"git", hbmscope_git_revision()}, {"argv", argv}};
  out["source"] = {{"file", p.source},
                   {"tool", "ncu"},
                   {"layout", p.layout == NcuLayout::rows ? "rows" : "columns"},
                   {"launches_in_file", p.launches_in_file},
                   {"kernel", text_or_null(p.kernel)}};
  for (const char* key : {"shape", "gpu"}) out[key] = nullptr;
  out["algorithms"] = Json::array();
  if (p.beside) {
    Json run = run_to_json(*p.beside, argv);
    for (const char* key : {"shape", "gpu", "algorithms"}) out[key] = std::move(run[key]);
    add_counters(out["algorithms"][0], p);
  }
  out["beside_reason"] = p.beside ? Json(nullptr) : Json(kNothingBeside);
  out["launches"] = Json::array();
  for (const CountedLaunch& launch : p.launches) out["launches"].push_back(launch_json(launch));
  out["counted_beside_predicted"] = Json::array();
  for (const LaunchComparison& c : p.comparisons) out["counted_beside_predicted"].push_back(comparison_json(p, c));
  out["warnings"] = p.warnings;
  return out;
}

std::string profile_to_csv(const ProfileImport& p) {
  return CsvRows(p).write();
}

}  // namespace hbmscope
