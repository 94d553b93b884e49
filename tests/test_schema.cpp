// docs/schema describes what the program really writes, and would notice if it wrote anything else.
#include <doctest/doctest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "json_schema.hpp"
#include "process.hpp"

using namespace hbmscope::testing;
using nlohmann::json;

namespace {

JsonSchema schema(const std::string& name) {
  return JsonSchema(json::parse(text_of_file(std::string(HBMSCOPE_SOURCE_DIR) + "/docs/schema/" + name)));
}

std::string text_of_run(const std::string& options) {
  const Outcome outcome = run_program(words("run --json - " + options));
  CAPTURE(options);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  REQUIRE(outcome.err.empty());
  return outcome.out;
}

/// Small enough to be quick, and with all there is: traffic, times, exactness, the whole step.
const json& small_run() {
  static const json run = json::parse(text_of_run("--seqlen 256 --head-dim 32 --attention-share 0.3"));
  return run;
}

bool valid(const JsonSchema& by, const json& value) {
  return by.errors(value).empty();
}

struct Null {
  std::string pointer;
  json parent;
};

void collect_nulls(const json& value, const std::string& at, std::vector<Null>& nulls) {
  for (const auto& [key, member] : value.items()) {
    const std::string pointer = at + "/" + key;
    if (member.is_null() && value.is_object()) nulls.push_back({pointer, value});
    if (member.is_structured()) collect_nulls(member, pointer, nulls);
  }
}

/// What only a GPU can measure, and the key beside it that says why it is missing.
constexpr std::pair<std::string_view, const char*> kMeasured[]{{"/measured_median_s", "reason"},
                                                               {"/measured_peak_bytes", "measured_reason"},
                                                               {"/speedup_measured", "measured_reason"},
                                                               {"/achieved_flop_per_s", "achieved_reason"},
                                                               {"/launch_gap_s", "launch_gap_reason"},
                                                               {"/tensor_pipe_share", "tensor_pipe_reason"},
                                                               {"/predicted_s", "predicted_reason"},
                                                               {"/speedup_predicted", "predicted_reason"},
                                                               {"/max_abs_error", "reason"},
                                                               {"/within_tolerance", "reason"},
                                                               {"/total_bytes", "reason"},
                                                               {"/end_to_end_speedup", "reason"},
                                                               {"/intensity_flop_per_byte", "reason"},
                                                               {"/attainable_flop_per_s", "reason"}};

}  // namespace

TEST_CASE("the validator finds what breaks each keyword, and says where") {
  const auto errors = [](const char* by, const char* value) {
    return JsonSchema(json::parse(by)).errors(json::parse(value));
  };
  const auto broken_at = [&](const char* by, const char* value) {
    const std::vector<std::string> found = errors(by, value);
    return found.empty() ? "nowhere" : found[0].substr(0, found[0].find(':'));
  };
  CHECK(broken_at(R"({"type": "integer"})", "1") == "nowhere");
  CHECK(broken_at(R"({"type": "integer"})", "1.0") == "");
  CHECK(broken_at(R"({"type": ["integer", "null"]})", "null") == "nowhere");
  CHECK(broken_at(R"({"type": ["integer", "null"]})", "\"1\"") == "");
  CHECK(broken_at(R"({"properties": {"a": {"type": "string"}}})", R"({"a": 1})") == "/a");
  CHECK(broken_at(R"({"required": ["a"]})", R"({"b": 1})") == "");
  CHECK(broken_at(R"({"properties": {"a": {}}, "additionalProperties": false})", R"({"a": 1, "b": 2})") == "/b");
  CHECK(broken_at(R"({"additionalProperties": {"type": "string"}})", R"({"b": 2})") == "/b");
  CHECK(broken_at(R"({"items": {"minimum": 3}})", "[3, 4, 2]") == "/2");
  CHECK(broken_at(R"({"minItems": 2})", "[1]") == "");
  CHECK(broken_at(R"({"minLength": 1})", "\"\"") == "");
  CHECK(broken_at(R"({"enum": ["a", null]})", "null") == "nowhere");
  CHECK(broken_at(R"({"enum": ["a", null]})", "\"b\"") == "");
  CHECK(broken_at(R"({"const": "a"})", "\"b\"") == "");
  CHECK(broken_at(R"({"anyOf": [{"type": "string"}, {"minimum": 2}]})", "2") == "nowhere");
  CHECK(broken_at(R"({"anyOf": [{"type": "string"}, {"minimum": 2}]})", "1") == "");
  CHECK(broken_at(R"({"$ref": "#/$defs/x", "$defs": {"x": {"items": {"type": "null"}}}})", "[null, 0]") == "/1");
  CHECK_THROWS(errors(R"({"maximum": 1})", "2"));
  CHECK_THROWS(errors(R"({"type": "float"})", "2"));
}

TEST_CASE("the schema holds for whatever run is asked to do, and no number is text for NaN or infinity") {
  const JsonSchema by = schema("run.schema.json");
  for (const char* options :
       {"--seqlen 512", "--seqlen 512 --pass backward", "--seqlen 512 --pass both",
        "--pass decode --seqlen 2k --heads 8 --kv-heads 2", "--engine model", "--seqlen 512 --engine sim",
        "--seqlen 300 --heads 6 --kv-heads 3 --causal", "--seqlen 400 --window 63",
        "--seqlen 400 --window 10,-1 --align top-left", "--seqlen 512 --l2-state warm", "--seqlen 512 --l2 none",
        "--seqlen 512 --attention-share 0.3", "--seqlen 512 --attention-share 1 --attention-speedup 2",
        "--seqlen-q 8 --seqlen-kv 8 --window 0,-1 --batch 2 --kv-lengths 3,8 --attention-time-saved 0.3 "
        "--attention-share 0.5",
        "--seqlen-q 64 --seqlen-kv 16 --causal --gemm-tile 16,32 --scale-pass --mask-pass --fp32-scores "
        "--softmax-reads 3",
        "--seqlen 256 --dtype fp8 --gpu t4", "--seqlen 256 --dtype fp32 --head-dim 20 --head-dim-v 12",
        "--seqlen 512 --algorithm flash_v2,split_kv --kv-splits 3 --cluster 2", "--seqlen 64M"}) {
    const std::string text = text_of_run(options);
    for (const std::string& error : by.errors(json::parse(text))) FAIL_CHECK(options << ": " << error);
    for (const char* word : {"NaN", "nan,", "Infinity", "inf,", ": \"-\""}) {
      CAPTURE(options);
      CAPTURE(word);
      CHECK(text.find(word) == std::string::npos);
    }
  }
}

TEST_CASE("a value that is not there has its reason beside it") {
  for (const char* options : {"--seqlen 512", "--engine model", "--seqlen 64M", "--seqlen 256 --dtype fp8 --gpu t4"}) {
    CAPTURE(options);
    std::vector<Null> nulls;
    collect_nulls(json::parse(text_of_run(options)), "", nulls);
    std::size_t held = 0;
    for (const Null& null : nulls) {
      for (const auto& [suffix, reason] : kMeasured) {
        if (!null.pointer.ends_with(suffix)) continue;
        CAPTURE(null.pointer);
        REQUIRE(null.parent.contains(reason));
        REQUIRE(null.parent[reason].is_string());
        CHECK_FALSE(null.parent[reason].get<std::string>().empty());
        ++held;
      }
    }
    CHECK(held > 10);
  }
}

TEST_CASE("the schema notices a key that is gone and a value of another kind") {
  const JsonSchema by = schema("run.schema.json");
  REQUIRE(valid(by, small_run()));
  for (const char* pointer : {"/schema_version",
                              "/meta/argv",
                              "/shape/live_pairs",
                              "/shape/mask/kind",
                              "/gpu/sources",
                              "/gpu/l2_bytes",
                              "/algorithms/0/plan",
                              "/algorithms/0/traffic/0/boundary",
                              "/algorithms/1/traffic/1/provenance",
                              "/algorithms/0/traffic/0/tensors/Q/read_bytes",
                              "/algorithms/0/stages/1/time",
                              "/algorithms/2/kernel_count",
                              "/algorithms/0/flops/executed_matmul",
                              "/algorithms/0/memory/peak_bytes",
                              "/algorithms/0/roofline/bound",
                              "/algorithms/0/time/samples_s",
                              "/algorithms/0/exactness/rmse",
                              "/paper/flash_elements",
                              "/paper/lower_bound_elements",
                              "/comparison/0/traffic_ratio",
                              "/amdahl/limit"}) {
    CAPTURE(pointer);
    const json::json_pointer path(pointer);
    json without = small_run(), other = small_run();
    without.at(path.parent_pointer()).erase(path.back());
    CHECK_FALSE(valid(by, without));
    other.at(path) = json::array({false});
    CHECK_FALSE(valid(by, other));
  }
}

TEST_CASE("the schema notices a missing value without a reason, and bytes that are no integer") {
  const JsonSchema by = schema("run.schema.json");
  const auto changed = [](const char* pointer, const json& value) {
    json run = small_run();
    run.at(json::json_pointer(pointer)) = value;
    return run;
  };
  CHECK(valid(by, changed("/notes", json::array({"a note"}))));
  json wider = small_run();
  wider["algorithms"][0]["a_field_of_tomorrow"] = 1;
  CHECK(valid(by, wider));
  CHECK_FALSE(valid(by, changed("/algorithms/0/time/reason", nullptr)));
  CHECK_FALSE(valid(by, changed("/algorithms/0/time/reason", "")));
  CHECK_FALSE(valid(by, changed("/algorithms/0/memory/measured_reason", nullptr)));
  CHECK_FALSE(valid(by, changed("/comparison/0/measured_reason", nullptr)));
  CHECK_FALSE(valid(by, changed("/comparison/0/speedup_predicted", nullptr)));
  CHECK_FALSE(valid(by, changed("/algorithms/0/exactness/max_abs_error", nullptr)));
  CHECK_FALSE(valid(by, changed("/algorithms/0/roofline/bound", nullptr)));
  CHECK_FALSE(valid(by, changed("/algorithms/0/traffic/0/total_bytes", nullptr)));
  CHECK_FALSE(valid(by, changed("/algorithms/0/traffic/0/status", "skipped")));
  CHECK_FALSE(valid(by, changed("/algorithms/0/traffic/0/read_bytes", 1.5)));
  CHECK_FALSE(valid(by, changed("/algorithms/0/traffic/0/read_bytes", -1)));
  CHECK_FALSE(valid(by, changed("/amdahl/end_to_end_speedup", nullptr)));
}

TEST_CASE("bytes beyond 2^53 keep their last digit") {
  // 255 heads of N = 2^24 + 1: as a double, the total would be off.
  constexpr std::int64_t N = (std::int64_t{1} << 24) + 1, d = 16, heads = 255, e = 2;
  constexpr std::int64_t naive_bytes = heads * (4 * N * N * e + 4 * N * d * e);
  static_assert(naive_bytes > (std::int64_t{1} << 53));
  static_assert(static_cast<std::int64_t>(static_cast<double>(naive_bytes)) != naive_bytes);
  const json run =
      json::parse(text_of_run("--engine model --seqlen " + std::to_string(N) + " --heads 255 --head-dim 16"));
  CHECK(run["shape"]["live_pairs"] == heads * N * N);
  for (const json& entry : run["algorithms"][0]["traffic"]) {
    if (entry["boundary"] != "sm_l2" || !entry["plan"]["gemm_tile"].is_null()) continue;
    REQUIRE(entry["total_bytes"].is_number_integer());
    CHECK(entry["total_bytes"].get<std::int64_t>() == naive_bytes);
    return;
  }
  FAIL("no naive entry with each operand once a kernel");
}

TEST_CASE("the schema of batch holds for answers and for complaints, and for nothing else") {
  const JsonSchema by = schema("batch.schema.json");
  Call call{words("batch -"), "", "", false, false, {}};
  std::istringstream golden(text_of_file(std::string(HBMSCOPE_SOURCE_DIR) + "/tests/data/golden.jsonl"));
  std::size_t asked = 0;
  for (std::string line; asked < 200 && std::getline(golden, line); ++asked) call.input += line + "\n";
  call.input += "{}\n{\n[1]\n{\"algorithm\": \"flash_v9\", \"shape\": 1}\n";
  const Outcome outcome = run_program(call);
  CHECK(outcome.code == 3);
  std::istringstream lines(outcome.out);
  std::size_t answered = 0, complaints = 0;
  for (std::string line; std::getline(lines, line); ++answered) {
    const json value = json::parse(line);
    for (const std::string& error : by.errors(value)) FAIL_CHECK(line << ": " << error);
    if (value.contains("error")) ++complaints;
  }
  CHECK(answered == asked + 4);
  CHECK(complaints == 4);
  CHECK_FALSE(valid(by, json::parse(R"({"error": "", "line": 1})")));
  CHECK_FALSE(valid(by, json::parse(R"({"error": "wrong", "line": 0})")));
  CHECK_FALSE(valid(by, json::parse("{}")));
}
