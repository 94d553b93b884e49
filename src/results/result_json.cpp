#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "results/result_file.hpp"
#include "results/roof_file.hpp"
#include "scenario/batch_line.hpp"
#include "scenario/fields.hpp"

namespace hbmscope {
namespace {

using nlohmann::json;

constexpr const char* kResultHint = "results are what `hbmscope run --json FILE` and `hbmscope sweep` write";

/// The major number of "1.0"; nothing for any other text.
std::optional<int> major_number(std::string_view version) {
  int major = 0, minor = 0;
  const char* const last = version.data() + version.size();
  const auto [point, error] = std::from_chars(version.data(), last, major);
  if (error != std::errc{} || point == last || *point != '.') return std::nullopt;
  const auto [end, second_error] = std::from_chars(point + 1, last, minor);
  if (second_error != std::errc{} || end != last) return std::nullopt;
  return major;
}

/// Reads one document. Every object knows its place, so that an error can name it.
class ResultReader {
 public:
  explicit ResultReader(std::string where) { result_.where = std::move(where); }

  Result read(const json& document) {
    const Fields top(document, result_.where);
    check_schema_version(top);
    if (top.find("sweep") != nullptr) read_sweep(top.require_object("sweep"));
    if (top.find("meta") != nullptr) read_meta(top.require_object("meta"));
    if (!result_.failed()) {
      if (top.find("shape") == nullptr && top.find("roofs") != nullptr)
        top.fail("roofs", "makes this a probe of a GPU, which is no result", "give it to plot as --roofs FILE");
      if (top.find("shape") == nullptr) top.fail("shape", "is missing: this is no result of a run", kResultHint);
      result_.shape = shape_from_json(top.require("shape"), result_.where, "/shape");
      const Fields shape = top.require_object("shape");
      result_.pass = shape.optional_string("pass").value_or("forward");
      result_.live_pairs = shape.optional_integer("live_pairs", 0);
      read_gpu(top.require_object("gpu"));
    }
    each(top, "algorithms", true, [&](const Fields& one) { result_.algorithms.push_back(algorithm(one)); });
    if (top.find("paper") != nullptr)
      result_.sram_bytes = top.require_object("paper").optional_integer("sram_bytes", 0);
    each(top, "comparison", false, [&](const Fields& one) {
      result_.comparisons.push_back({one.require_string("of"), one.require_string("to"), one.require_string("boundary"),
                                     one.optional_real("traffic_ratio"), one.optional_real("speedup_predicted"),
                                     one.optional_real("speedup_measured")});
    });
    if (top.find("amdahl") != nullptr) read_amdahl(top.require_object("amdahl"));
    return std::move(result_);
  }

 private:
  /// Hands on each element of a list of objects; a list that is not there is an error where it is required.
  template <class Take>
  void each(const Fields& of, const char* key, bool required, const Take& take) const {
    const json* list = required ? &of.require(key) : of.find(key);
    if (list == nullptr) return;
    if (!list->is_array()) of.fail(key, "must be a list, got " + describe(*list), kResultHint);
    std::size_t index = 0;
    for (const json& element : *list)
      take(Fields(element, result_.where, of.pointer() + "/" + key + "/" + std::to_string(index++)));
  }

  static std::string text(const Fields& of, const char* key) { return of.optional_string(key).value_or(""); }

  void read_sweep(const Fields& from) {
    SweepPoint point;
    point.index = from.require_integer("index", 0);
    point.key = from.require_string("key");
    point.status = from.require_string("status");
    if (point.status != "ok" && point.status != "failed")
      from.fail("status", "must be \"ok\" or \"failed\", got " + in_quotes(point.status), kResultHint);
    point.reason = text(from, "reason");
    const Fields axes = from.require_object("axes");
    for (const auto& [name, value] : axes.object().get_ref<const json::object_t&>()) {
      if (value.is_structured()) axes.fail(name, "must be a number or a text, got " + describe(value), kResultHint);
      SweepPoint::Axis axis{name, value.is_string() ? value.get<std::string>() : value.dump(), std::nullopt};
      if (value.is_number()) axis.number = value.get<double>();
      point.axes.push_back(std::move(axis));
    }
    result_.sweep = std::move(point);
  }

  void read_meta(const Fields& from) {
    result_.tool_version = text(from, "version");
    result_.git = text(from, "git");
    result_.argv = from.optional_strings("argv");
    result_.device = text(from, "device");
  }

  void read_gpu(const Fields& from) {
    ResultGpu& gpu = result_.gpu;
    gpu.name = from.require_string("name");
    gpu.hbm_bytes_per_s = positive(from, "hbm_bandwidth_bytes_per_s");
    gpu.l2_bytes = from.optional_integer("l2_bytes", 0);
    gpu.l2_effective_bytes = from.optional_integer("l2_effective_bytes", 0);
    gpu.smem_per_block_bytes = from.optional_integer("smem_per_block_bytes", 0);
    each(from, "roofs", false, [&](const Fields& one) {
      const RoofKind* const kind = find_roof_kind(one.require_string("name"));
      const std::optional<double> rate = positive(one, "rate");
      if (kind != nullptr && rate) add_measured_roof(gpu.measured_roofs, *kind, *rate);
    });
    if (from.find("peak_flop_per_s") == nullptr) return;
    const Fields peak = from.require_object("peak_flop_per_s");
    for (const auto& [dtype, value] : peak.object().get_ref<const json::object_t&>()) {
      if (const auto rate = positive(peak, dtype.c_str())) gpu.peak_flop_per_s.emplace_back(dtype, *rate);
    }
  }

  void read_amdahl(const Fields& from) {
    result_.amdahl = {from.optional_real("attention_share"), from.optional_real("attention_speedup"),
                      from.optional_real("end_to_end_speedup"), text(from, "attention_speedup_from"),
                      text(from, "reason")};
  }

  /// A rate, a time, an error: 0 or more.
  static std::optional<double> not_negative(const Fields& from, const char* key) {
    const std::optional<double> value = from.optional_real(key);
    if (value && *value < 0) from.fail(key, "must not be negative, got " + from.require(key).dump(), kResultHint);
    return value;
  }
  static std::optional<double> positive(const Fields& from, const char* key) {
    const std::optional<double> value = not_negative(from, key);
    if (value && *value <= 0) from.fail(key, "must be larger than 0", "write null for an unknown value");
    return value;
  }

  static std::string plan(const Fields& from) {
    return from.find("plan") == nullptr ? "" : from.require_object("plan").object().dump();
  }

  static ResultTraffic traffic(const Fields& from) {
    ResultTraffic entry;
    entry.boundary = from.require_string("boundary");
    entry.provenance = from.require_string("provenance");
    entry.plan = plan(from);
    entry.status = from.require_string("status");
    entry.reason = text(from, "reason");
    if (entry.status != "ok") return entry;
    entry.read = from.require_integer("read_bytes", 0);
    entry.write = from.require_integer("write_bytes", 0);
    entry.total = from.require_integer("total_bytes", 0);
    WideInt sum = WideInt{*entry.read} + *entry.write;
    if (sum != *entry.total) from.fail("total_bytes", "is not the sum of read_bytes and write_bytes", kResultHint);
    entry.least = from.optional_integer("least_total_bytes", 0);
    entry.most = from.optional_integer("most_total_bytes", 0);
    if (from.find("tensors") == nullptr) return entry;
    const Fields tensors = from.require_object("tensors");
    entry.tensors.emplace();
    sum = 0;
    for (const auto& member : tensors.object().get_ref<const json::object_t&>()) {
      const Fields tensor = tensors.require_object(member.first.c_str());
      entry.tensors->push_back(
          {member.first, tensor.require_integer("read_bytes", 0), tensor.require_integer("write_bytes", 0)});
      sum += WideInt{entry.tensors->back().read} + entry.tensors->back().write;
    }
    if (sum != *entry.total) from.fail("tensors", "do not add up to total_bytes", kResultHint);
    return entry;
  }

  static ResultTime time(const Fields& from) {
    ResultTime time;
    time.predicted_s = {not_negative(from, "predicted_s"), text(from, "predicted_reason")};
    time.measured_median_s = not_negative(from, "measured_median_s");
    time.measured_least_s = not_negative(from, "measured_least_s");
    time.measured_most_s = not_negative(from, "measured_most_s");
    time.reason = text(from, "reason");
    if (const json* samples = from.find("samples_s")) {
      if (!samples->is_array()) from.fail("samples_s", "must be a list, got " + describe(*samples), kResultHint);
      for (const json& sample : *samples) {
        if (!sample.is_number() || sample.get<double>() < 0)
          from.fail("samples_s", "must hold times in seconds, got " + describe(sample), kResultHint);
        time.samples_s.push_back(sample.get<double>());
      }
    }
    return time;
  }

  ResultStage stage(const Fields& from) const {
    ResultStage stage;
    stage.name = from.require_string("name");
    each(from, "traffic", false, [&](const Fields& one) { stage.traffic.push_back(traffic(one)); });
    if (from.find("time") != nullptr) stage.time = time(from.require_object("time"));
    return stage;
  }

  std::optional<ResultErrors> errors(const Fields& exactness) const {
    if (exactness.find("errors") == nullptr) return std::nullopt;
    const Fields from = exactness.require_object("errors");
    ResultErrors errors;
    errors.exact = from.require_integer("exact_elements", 0);
    each(from, "bins", true, [&](const Fields& one) {
      const std::optional<double> least = positive(one, "from"), most = positive(one, "to");
      if (!least || !most || !(*least < *most)) one.fail("to", "must be larger than \"from\"", kResultHint);
      if (!errors.bins.empty() && *least < errors.bins.back().to)
        one.fail("from", "must not lie within the bin before", kResultHint);
      constexpr std::size_t kMostBins = 2200;  // there are 2,098 powers of two
      if (errors.bins.size() == kMostBins)
        one.fail("from", "is of one bin too many, there are powers of two", kResultHint);
      errors.bins.push_back({*least, *most, one.require_integer("elements", 0)});
    });
    return errors;
  }

  ResultAlgorithm algorithm(const Fields& from) const {
    ResultAlgorithm a;
    a.name = from.require_string("name");
    a.plan = plan(from);
    each(from, "traffic", true, [&](const Fields& one) { a.traffic.push_back(traffic(one)); });
    each(from, "stages", false, [&](const Fields& one) { a.stages.push_back(stage(one)); });
    if (from.find("flops") != nullptr) {
      const Fields flops = from.require_object("flops");
      a.matmul_flop = flops.optional_integer("matmul", 0);
      a.executed_matmul_flop = flops.optional_integer("executed_matmul", 0);
      a.exp = flops.optional_integer("exp", 0);
    }
    if (from.find("memory") != nullptr) {
      const Fields memory = from.require_object("memory");
      a.memory = {memory.optional_integer("intermediate_bytes", 0),
                  memory.optional_integer("saved_for_backward_bytes", 0),
                  memory.optional_integer("peak_bytes", 0),
                  {memory.optional_integer("measured_peak_bytes", 0), text(memory, "measured_reason")}};
    }
    if (from.find("roofline") != nullptr) {
      const Fields roofline = from.require_object("roofline");
      a.achieved_flop_per_s = {positive(roofline, "achieved_flop_per_s"), text(roofline, "achieved_reason")};
      a.attainable_flop_per_s = positive(roofline, "attainable_flop_per_s");
    }
    each(from, "roofline_by_boundary", false, [&](const Fields& one) {
      a.intensities.push_back({one.require_string("level"), positive(one, "intensity_flop_per_byte"),
                               positive(one, "ridge_flop_per_byte"), text(one, "reason")});
    });
    if (from.find("time") != nullptr) a.time = time(from.require_object("time"));
    if (from.find("exactness") != nullptr) {
      const Fields exactness = from.require_object("exactness");
      a.exactness = {not_negative(exactness, "max_abs_error"),
                     not_negative(exactness, "rmse"),
                     not_negative(exactness, "tolerance"),
                     exactness.optional_integer("rows_checked", 0),
                     errors(exactness),
                     text(exactness, "reason")};
    }
    return a;
  }

  Result result_;
};

}  // namespace

void check_schema_version(const Fields& top) {
  if (top.find("schema_version") == nullptr) top.fail("schema_version", "is missing: this is no result", kResultHint);
  const std::string version = top.require_string("schema_version");
  const std::optional<int> major = major_number(version);
  if (!major) top.fail("schema_version", "must be a version such as \"1.0\", got " + in_quotes(version), kResultHint);
  if (*major == kResultSchemaMajor) return;
  top.fail("schema_version", "is " + version + ", and this program reads " + std::to_string(kResultSchemaMajor) + ".x",
           "use the hbmscope that wrote it, or make the result anew with this one");
}

Result result_from_json(const json& document, std::string where) {
  return ResultReader(std::move(where)).read(document);
}

}  // namespace hbmscope
