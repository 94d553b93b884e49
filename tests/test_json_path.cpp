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
  check_complaint("shap.live_pairs",
                  "the result has no key \"shap\"; it has shape, algorithms, amdahl | did you mean \"shape\"?");
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
  check_complaint("algorithms[]", "[] is neither a number nor key=value");
  check_complaint("algorithms[-1]", "[-1] is neither a number nor key=value");
  check_complaint("algorithms[naive]", "[naive] is neither a number nor key=value");
  check_complaint("algorithms[=naive]", "\"=naive\" is no condition");
  check_complaint("algorithms[name=naive,]", "\"\" is no condition");
  check_complaint("algorithms[0]name", "a '.' or '[' must follow algorithms[0]");
}
