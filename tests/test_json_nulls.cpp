// Every null in a run's JSON stands for something: a number that is missing, with its reason beside it, or one of the
// few things that have no number.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/run_options.hpp"
#include "report/run_json.hpp"

using namespace hbmscope;
using Json = nlohmann::ordered_json;

namespace {

/// Where null is a value of its own: docs/cli.md says which.
bool means_something(std::string_view key) {
  constexpr std::array<std::string_view, 6> kKeys{"window_left", "window_right", "gemm_tile",
                                                  "pack_gqa",    "formula",      "attention_speedup_from"};
  return key == "reason" || key.ends_with("_reason") || std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

/// Does the object say why it has no number under `key`? In a text of the number's own, or of what it is part of.
bool explains(const Json& object, const std::string& key) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kReasons{{
      {"predicted_s", "predicted_reason"},
      {"launch_gap_s", "launch_gap_reason"},
      {"tensor_pipe_share", "tensor_pipe_reason"},
      {"tensor_instructions_per_cycle", "tensor_pipe_reason"},
      {"measured_peak_bytes", "measured_reason"},
      {"achieved_flop_per_s", "achieved_reason"},
      {"speedup_predicted", "predicted_reason"},
      {"speedup_measured", "measured_reason"},
      {"kv_in_flight_bytes", "kv_in_flight_reason"},
      {"least_total_bytes", "interval_reason"},
      {"most_total_bytes", "interval_reason"},
      {"intensity_flop_per_byte", "intensity_reason"},
      {"peak_flop_per_s", "peak_reason"},
  }};
  if (!object.is_object()) return false;
  const auto row = std::find_if(kReasons.begin(), kReasons.end(), [&](const auto& r) { return r.first == key; });
  std::string reason = row == kReasons.end() ? key + "_reason" : std::string(row->second);
  if (row == kReasons.end() && !object.contains(reason)) reason = "reason";
  return object.contains(reason) && object[reason].is_string() && !object[reason].get<std::string>().empty();
}

/// JSON pointers of the nulls that nothing explains; `nulls` counts those that need it.
void unexplained(const Json& value, const std::string& at, std::vector<std::string>& found, int& nulls) {
  for (const auto& [key, member] : value.items()) {
    const std::string pointer = at + "/" + key;
    if (key == "peak_flop_per_s") {  // a rate a dtype; one reason for all
      const bool any = std::any_of(member.begin(), member.end(), [](const Json& rate) { return rate.is_null(); });
      if (any && !explains(value, key)) found.push_back(pointer);
      continue;
    }
    if (member.is_structured()) unexplained(member, pointer, found, nulls);
    if (!member.is_null() || means_something(key)) continue;
    ++nulls;
    if (!explains(value, key)) found.push_back(pointer);
  }
}

void check_explained(const Json& json) {
  std::vector<std::string> found;
  int nulls = 0;
  unexplained(json, "", found, nulls);
  for (const std::string& pointer : found) FAIL_CHECK("null without a reason: " << pointer);
  CHECK(nulls > 10);  // without a GPU there are always some
}

RunRequest small(std::int64_t seqlen = 300) {
  RunOptions o;
  o.seqlen = seqlen;
  o.engine = "cpu";
  o.gpu = "H100 SXM";
  RunRequest r = to_request(o);
  return r;
}

}  // namespace

TEST_CASE("every null of a run has its reason beside it, whatever is left out") {
  check_explained(run_to_json(run(small()), {}));
  for (const Engine engine : {Engine::model, Engine::sim}) {
    RunRequest r = small();
    r.engine = engine;
    check_explained(run_to_json(run(r), {}));
  }
  for (const char* pass : {"backward", "both", "decode"}) {
    RunRequest r = small();
    r.pass = pass;
    if (r.pass == "decode") r.shape.seqlen_q = 1;
    check_explained(run_to_json(run(r), {}));
  }
  RunRequest step = small();
  step.amdahl = {1.0, 2.0, {}};
  check_explained(run_to_json(run(step), {}));
  RunRequest masked = small();
  masked.shape.batch = 2;
  masked.shape.kv_lengths = {0, 0};
  check_explained(run_to_json(run(masked), {}));
  RunRequest no_cache = small();
  no_cache.l2 = Bytes(0);
  check_explained(run_to_json(run(no_cache), {}));
  check_explained(run_to_json(run(small(std::int64_t{64} << 20)), {}));  // too long to walk
}

TEST_CASE("a dtype that the GPU lacks leaves ridges and times without a number, and each says so") {
  for (const Engine engine : {Engine::model, Engine::sim}) {
    RunOptions o;
    o.seqlen = 512;
    o.dtype = "bf16";
    o.gpu = "V100";
    RunRequest r = to_request(o);
    r.engine = engine;
    const Json json = run_to_json(run(r), {});
    check_explained(json);
    for (const Json& a : json["algorithms"]) {
      for (const Json& level : a["roofline_by_boundary"]) {
        CHECK(level["ridge_reason"] == "this GPU has no matmul rate for the dtype");
        const bool counted = engine == Engine::sim || level["level"] != "l2_hbm";
        CHECK(level["intensity_flop_per_byte"].is_number() == counted);
        CHECK(level["intensity_reason"].is_null() == counted);
      }
    }
  }
}

TEST_CASE("an error that is no number is null, and the infinities are its reason") {
  RunResult result = run(small());
  Exactness& exactness = *result.algorithms[0].exactness.value;
  exactness.max_abs_error = exactness.rmse = std::numeric_limits<double>::infinity();
  const Json json = run_to_json(result, {});
  CHECK(json["algorithms"][0]["exactness"]["max_abs_error"].is_null());
  check_explained(json);
}

TEST_CASE("the search finds a null that is planted") {
  Json json = run_to_json(run(small()), {});
  json["algorithms"][0]["resident_ctas"] = nullptr;
  std::vector<std::string> found;
  int nulls = 0;
  unexplained(json, "", found, nulls);
  REQUIRE(found.size() == 1);
  CHECK(found[0] == "/algorithms/0/resident_ctas");
}
