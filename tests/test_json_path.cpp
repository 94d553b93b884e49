#include <doctest/doctest.h>

#include <string>

#include "core/error.hpp"
#include "report/json_path.hpp"

using namespace hbmscope;

namespace {

const nlohmann::ordered_json& result() {
  static const auto document = nlohmann::ordered_json::parse(R"({
    "shape": {"live_pairs": 9},
    "algorithms": [
      {"name": "naive", "plan": {"gemm_tile": null}, "traffic": [
        {"boundary": "sm_l2", "plan": {"gemm_tile": null}, "total_bytes": 545},
        {"boundary": "sm_l2", "plan": {"gemm_tile": [128, 64]}, "total_bytes": 942}]},
      {"name": "flash_v2", "plan": {"block_q": 128, "pack_gqa": true}, "traffic": []}],
    "values": {"S1-01": {"bytes": 537}, "S1-02": {}, "a.b]": 3},
    "time": {"speedup_measured": null, "measured_reason": "no device", "predicted_s": null, "reason": "no peak"},
    "amdahl": {"limit": null}})");
  return document;
}

/// "message | hint" of the Error that the path ends in.
std::string complaint(const std::string& path) {
  try {
    (void)at_path(result(), path);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

void check_complaint(const std::string& path, const std::string& part) {
  const std::string said = complaint(path);
  CAPTURE(said);
  CHECK(said.starts_with(path + ": "));
  CHECK(said.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("a path walks keys, indices and conditions") {
  CHECK(at_path(result(), "shape.live_pairs") == 9);
  CHECK(at_path(result(), "algorithms[1].name") == "flash_v2");
  CHECK(at_path(result(), "algorithms[name=flash_v2].plan.block_q") == 128);
  CHECK(at_path(result(), "algorithms[name=naive].traffic[boundary=sm_l2,plan.gemm_tile=null].total_bytes") == 545);
  CHECK(at_path(result(), "algorithms[name=naive].traffic[boundary=sm_l2,plan.gemm_tile=[128,64]].total_bytes") == 942);
  CHECK(at_path(result(), "algorithms[plan.pack_gqa=true].name") == "flash_v2");
  CHECK(at_path(result(), "algorithms[plan.block_q=128].name") == "flash_v2");
  CHECK(at_path(result(), "values[\"S1-01\"].bytes") == 537);
  CHECK(at_path(result(), "values[\"a.b]\"]") == 3);
  CHECK(at_path(result(), "[\"values\"].S1-01[\"bytes\"]") == 537);
  CHECK(at_path(result(), "algorithms[1][\"plan\"].block_q") == 128);
  CHECK(at_path(result(), "amdahl.limit").is_null());
  CHECK(at_path(result(), "algorithms").size() == 2);
}

TEST_CASE("a key that is absent meets no condition, not even null") {
  check_complaint("algorithms[plan.order=null].name", "no element of algorithms has plan.order=null");
  check_complaint("algorithms[plan.order=null].name", "[plan.order=(absent)]");
}

TEST_CASE("conditions that several elements meet, or none, list what there is") {
  check_complaint("algorithms[name=naive].traffic[boundary=sm_l2].total_bytes",
                  "2 elements of algorithms[name=naive].traffic have boundary=sm_l2; there are [boundary=sm_l2], "
                  "[boundary=sm_l2] | add a condition");
  check_complaint("algorithms[name=flash_v3].plan",
                  "no element of algorithms has name=flash_v3; there are [name=naive], [name=flash_v2]");
  check_complaint("algorithms[name=flash_v2].traffic[boundary=sm_l2]", "there are none at all");
}

TEST_CASE("a missing key names the step, the keys there and the nearest one") {
  check_complaint(
      "algorithms[name=flash_v2].plan.blockq",
      "algorithms[name=flash_v2].plan has no key \"blockq\"; it has block_q, pack_gqa | did you mean \"block_q\"?");
  check_complaint(
      "shap.live_pairs",
      "the result has no key \"shap\"; it has shape, algorithms, values, time, amdahl | did you mean \"shape\"?");
}

TEST_CASE("near keys come first, others once and not beyond the twelfth") {
  check_complaint("algorithms[1].plan.pack", "it has pack_gqa, block_q | did you mean \"pack_gqa\"?");
  check_complaint("amdahl.unlike", "has no key \"unlike\"; it has limit | take a key that is there");
  check_complaint("values.S1", "has no key \"S1\"; it has S1-01, S1-02, a.b] | ");
  check_complaint("values.S1", "stands in quotes: values[\"S1-01\"]");
  nlohmann::ordered_json many;
  for (int i = 10; i < 89; ++i) many["key" + std::to_string(i)] = i;
  try {
    (void)at_path(many, "unlike");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).ends_with("key20, key21, ... (79 in all)"));
    CHECK(error.hint() == "take a key that is there");
  }
}

TEST_CASE("the reason of a null is that of its own key, else that of the object") {
  CHECK(reason_of_null(result()["time"], "speedup_measured") == "no device");
  CHECK(reason_of_null(result()["time"], "predicted_s") == "no peak");
  CHECK(reason_of_null(result()["amdahl"], "limit").empty());
  check_complaint("time.predicted_s.x", "time.predicted_s is null (no peak) and has no key \"x\"");
}

TEST_CASE("a step into the wrong kind of value says what stands there") {
  check_complaint("shape.live_pairs.x", "shape.live_pairs is 9 and has no key \"x\"");
  check_complaint("amdahl.limit.x", "amdahl.limit is null and has no key \"x\"");
  check_complaint("algorithms.name", "algorithms is a list and has no key \"name\" | choose an element");
  check_complaint("shape[0]", "shape is an object, not a list | leave out [0]");
  check_complaint("algorithms[2].name", "algorithms has 2 elements, so there is no [2]");
}

TEST_CASE("a path that is none says where it breaks") {
  check_complaint("", "a key is missing after the result");
  check_complaint(".shape", "a key is missing after the result");
  check_complaint("shape.", "a key is missing after shape");
  check_complaint("shape..live_pairs", "a key is missing after shape");
  check_complaint("algorithms[0", "the [ after algorithms has no ]");
  check_complaint("values[\"S1-01.bytes", "the [\" after values has no \"]");
  check_complaint("shape[\"x\"]", "shape has no key \"x\"");
  check_complaint("algorithms[\"x\"]", "algorithms is a list and has no key \"x\"");
  check_complaint("values[\"S1-01\"]bytes", "a '.' or '[' must follow values[\"S1-01\"]");
  check_complaint("algorithms[]", "[] is neither a number nor key=value");
  check_complaint("algorithms[-1]", "[-1] is neither a number nor key=value");
  check_complaint("algorithms[naive]", "[naive] is neither a number nor key=value");
  check_complaint("algorithms[=naive]", "\"=naive\" is no condition");
  check_complaint("algorithms[name=naive,]", "\"\" is no condition");
  check_complaint("algorithms[0]name", "a '.' or '[' must follow algorithms[0]");
}
