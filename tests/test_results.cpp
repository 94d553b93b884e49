// Files of results: what run and sweep write is read whole, and whatever is wrong in a file is told with its line.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli_checks.hpp"
#include "core/error.hpp"
#include "process.hpp"
#include "report/run_json.hpp"
#include "results/result_file.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;
using nlohmann::json;

namespace {

const std::string kForward = std::string(HBMSCOPE_SOURCE_DIR) + "/reports/h200/forward.jsonl";

/// A row as `sweep` writes it, with the least that a result has.
json small_row() {
  return json::parse(R"({
    "schema_version": "1.0",
    "sweep": {"index": 3, "key": "00ff", "axes": {"seqlen": 512, "gpu": "h200"}, "status": "ok", "reason": null},
    "meta": {"tool": "hbmscope", "version": "0.1.0", "git": "abc"},
    "shape": {"batch": 1, "num_heads": 4, "num_kv_heads": 2, "seqlen_q": 512, "seqlen_kv": 512, "head_dim": 64,
              "head_dim_v": 64, "dtype": "fp16", "pass": "forward", "live_pairs": 1048576,
              "mask": {"kind": "none", "alignment": "bottom_right", "window_left": null, "window_right": null}},
    "gpu": {"name": "H200"},
    "algorithms": [{"name": "flash_v2", "plan": {"block_q": 128, "block_kv": 128},
      "traffic": [{"boundary": "sm_l2", "provenance": "closed_form", "plan": {"block_q": 128, "block_kv": 128},
                   "status": "ok", "reason": null, "read_bytes": 9007199254740993, "write_bytes": 5,
                   "total_bytes": 9007199254740998}]}]
  })");
}

struct Complaint {
  std::string message, hint;
};

Complaint complaint_about(const std::string& text, const std::string& name = "rows.jsonl") {
  const TemporaryFolder folder;
  const std::string path = folder.write(name, text);
  try {
    read_results(path);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    std::string message = error.what();
    const std::size_t at = message.find(path);
    REQUIRE(at != std::string::npos);
    return {message.replace(at, path.size(), name), error.hint()};
  }
  return {"nothing", "nothing"};
}

/// The complaint about a small row with one member changed.
std::string changed(const char* pointer, const json& value) {
  json row = small_row();
  row[json::json_pointer(pointer)] = value;
  const Complaint complaint = complaint_about(row.dump() + "\n");
  CHECK_FALSE(complaint.hint.empty());
  return complaint.message;
}

std::vector<json> lines_as_json(const std::string& path) {
  std::istringstream lines(text_of_file(path));
  std::vector<json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(json::parse(line));
  return all;
}

}  // namespace

TEST_CASE("the reader takes the major version that this program writes") {
  CHECK(kSchemaVersion.substr(0, kSchemaVersion.find('.')) == std::to_string(kResultSchemaMajor));
}

TEST_CASE("saved runs are read with every value that the file has") {
  const std::vector<json> expected = lines_as_json(kForward);
  const std::vector<Result> results = read_results(kForward);
  REQUIRE(results.size() == expected.size());
  std::size_t entries = 0, tensors = 0, measured = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    const json& j = expected[i];
    CHECK(r.argv == j["meta"]["argv"].get<std::vector<std::string>>());
    CHECK(r.device == j["meta"]["device"]);
    CHECK(r.shape->seqlen_q == j["shape"]["seqlen_q"]);
    CHECK(std::string(r.shape->mask.kind()) == j["shape"]["mask"]["kind"]);
    CHECK(*r.gpu.hbm_bytes_per_s == j["gpu"]["hbm_bandwidth_bytes_per_s"].get<double>());
    REQUIRE(r.algorithms.size() == j["algorithms"].size());
    for (std::size_t a = 0; a < r.algorithms.size(); ++a) {
      const ResultAlgorithm& mine = r.algorithms[a];
      const json& theirs = j["algorithms"][a];
      CHECK(mine.name == theirs["name"]);
      CHECK(mine.plan == theirs["plan"].dump());
      CHECK(*mine.matmul_flop == theirs["flops"]["matmul"].get<std::int64_t>());
      CHECK(mine.time.samples_s == theirs["time"]["samples_s"].get<std::vector<double>>());
      CHECK(mine.exactness.max_abs_error.has_value() == !theirs["exactness"]["max_abs_error"].is_null());
      REQUIRE(mine.traffic.size() == theirs["traffic"].size());
      for (std::size_t t = 0; t < mine.traffic.size(); ++t) {
        const ResultTraffic& entry = mine.traffic[t];
        const json& other = theirs["traffic"][t];
        ++entries;
        if (entry.measured()) ++measured;
        CHECK(entry.total.has_value() == !other["total_bytes"].is_null());
        if (entry.total) CHECK(*entry.total == other["total_bytes"].get<std::int64_t>());
        CHECK(entry.tensors.has_value() == !other["tensors"].is_null());
        if (!entry.tensors) continue;
        CHECK(entry.tensors->size() == other["tensors"].size());
        for (const TensorBytes& tensor : *entry.tensors) {
          ++tensors;
          CHECK(tensor.read == other["tensors"][tensor.name]["read_bytes"].get<std::int64_t>());
        }
      }
    }
  }
  CHECK(entries > 1000);
  CHECK(measured > 300);
  CHECK(tensors > 3000);
}

TEST_CASE("of naive's two closed forms the one of its own tiles stands for it") {
  const Result r = read_results(kForward).front();
  const ResultTraffic* entry = r.find("naive")->find("sm_l2", "closed_form");
  REQUIRE(entry != nullptr);
  CHECK(entry->plan.find("\"gemm_tile\":[128,128]") != std::string::npos);
  CHECK(r.find("naive")->find("sm_l2", "quoted") == nullptr);
  CHECK(r.find("flash_v9") == nullptr);
}

TEST_CASE("what run prints is read, as a document and as a line") {
  const Outcome run = run_program(words("run --engine model --seqlen 1k --attention-share 0.3 --json -"));
  REQUIRE(run.code == 0);
  const TemporaryFolder folder;
  const std::string path = folder.write("run.json", run.out);
  const std::string joined =
      folder.write("run.jsonl", json::parse(run.out).dump() + "\n\n" + json::parse(run.out).dump());
  CHECK(read_results(path).size() == 1);
  REQUIRE(read_results(joined).size() == 2);
  const Result one = read_results(path)[0], other = read_results(joined)[1];
  CHECK(one.shape == other.shape);
  CHECK(one.algorithms.size() == 3);
  CHECK(*one.amdahl.attention_share == doctest::Approx(0.3));
  CHECK(other.where == joined + ": line 3");
}

TEST_CASE("a row of a sweep keeps its axes and every digit") {
  const TemporaryFolder folder;
  const Result r = read_results(folder.write("rows.jsonl", "\xEF\xBB\xBF" + small_row().dump() + "\r\n")).front();
  REQUIRE(r.sweep.has_value());
  CHECK(r.sweep->index == 3);
  CHECK(r.sweep->key == "00ff");
  REQUIRE(r.sweep->axes.size() == 2);
  CHECK(r.sweep->axes[0].name == "gpu");
  CHECK_FALSE(r.sweep->axes[0].number.has_value());
  CHECK(*r.sweep->axes[1].number == 512);
  CHECK(*r.algorithms[0].traffic[0].total == 9007199254740998);  // 2^53 + 6
  CHECK_FALSE(r.algorithms[0].traffic[0].tensors.has_value());
}

TEST_CASE("a failed point has a reason and no shape") {
  json row = small_row();
  row["sweep"]["status"] = "failed";
  row["sweep"]["reason"] = "--block-q: too large";
  row["shape"] = nullptr;
  row["algorithms"] = json::array();
  const TemporaryFolder folder;
  const Result r = read_results(folder.write("rows.jsonl", row.dump())).front();
  CHECK(r.failed());
  CHECK(r.sweep->reason == "--block-q: too large");
  CHECK_FALSE(r.shape.has_value());
}

TEST_CASE("another major version is refused, another minor one is read") {
  CHECK(changed("/schema_version", "2.0") == "rows.jsonl: line 1: /schema_version: is 2.0, and this program reads 1.x");
  CHECK(changed("/schema_version", "0.9").find("reads 1.x") != std::string::npos);
  CHECK(changed("/schema_version", "1").find("must be a version") != std::string::npos);
  CHECK(changed("/schema_version", "1.x").find("must be a version") != std::string::npos);
  CHECK(changed("/schema_version", 1.0).find("must be a text") != std::string::npos);
  json row = small_row();
  row["schema_version"] = "1.7";
  row["a_member_of_tomorrow"] = {1, 2};
  CHECK(complaint_about(row.dump()).message == "nothing");
}

TEST_CASE("a member that is missing or of another kind is named") {
  CHECK(changed("/shape", nullptr).find("line 1: /shape: is missing") != std::string::npos);
  CHECK(changed("/gpu", nullptr).find("/gpu: must not be null") != std::string::npos);
  CHECK(changed("/algorithms", json::object()).find("/algorithms: must be a list") != std::string::npos);
  CHECK(changed("/algorithms/0/name", 7).find("/algorithms/0/name: must be a text") != std::string::npos);
  CHECK(
      changed("/algorithms/0/traffic/0/read_bytes", 1.5).find("/algorithms/0/traffic/0/read_bytes: must be a whole") !=
      std::string::npos);
  CHECK(changed("/algorithms/0/traffic/0/read_bytes", -1).find("must be at least 0") != std::string::npos);
  CHECK(changed("/algorithms/0/traffic/0/write_bytes", 6).find("total_bytes: is not the sum") != std::string::npos);
  CHECK(changed("/algorithms/0/traffic/0/tensors", json::parse(R"({"Q": {"read_bytes": 1, "write_bytes": 0}})"))
            .find("tensors: do not add up") != std::string::npos);
  CHECK(changed("/algorithms/0/time", json::parse(R"({"samples_s": [1, "2"]})")).find("samples_s: must hold times") !=
        std::string::npos);
  CHECK(changed("/algorithms/0/time", json::parse(R"({"predicted_s": -1})")).find("must not be negative") !=
        std::string::npos);
  CHECK(changed("/shape/seqlen_q", 0).find("seqlen_q") != std::string::npos);
  CHECK(changed("/sweep/status", "maybe").find("/sweep/status: must be \"ok\" or \"failed\"") != std::string::npos);
  CHECK(changed("/sweep/axes/seqlen", json::array({1})).find("/sweep/axes/seqlen: must be a number or a text") !=
        std::string::npos);
}

TEST_CASE("numbers that are none are refused with their place") {
  const std::string row = small_row().dump();
  const auto with = [&](const std::string& number) {
    std::string text = row;
    const std::size_t at = text.find("9007199254740993");
    return complaint_about("\n" + text.replace(at, 16, number) + "\n").message;
  };
  CHECK(with("1e999").find("rows.jsonl: line 2, column ") == 0);
  CHECK(with("1e999").find("beyond the range of a double") != std::string::npos);
  CHECK(with("NaN").find("NaN is not JSON") != std::string::npos);
  CHECK(with("-Infinity").find("line 2") != std::string::npos);
  CHECK(with("99999999999999999999").find("does not fit 64 bits") != std::string::npos);
}

TEST_CASE("a file that is torn, empty or something else says so") {
  const std::string row = small_row().dump();
  CHECK(
      complaint_about(row + "\n" + row.substr(0, 100)).message.find("rows.jsonl: line 2, column 101: the text ends") ==
      0);
  CHECK(complaint_about("").message == "rows.jsonl: holds no result");
  CHECK(complaint_about(" \n\r\n").message == "rows.jsonl: holds no result");
  CHECK(complaint_about(row.substr(0, 50)).message.find("rows.jsonl: line 1, column 51: the text ends") == 0);
  CHECK(complaint_about("{\n\"schema_version\": \"1.0\",\n\"shape\": oops\n}")
            .message.find("rows.jsonl: line 3, column 10") == 0);
  CHECK(complaint_about("\n\n{\n\"schema_version\": oops\n}").message.find("rows.jsonl: line 4, column 19") == 0);
  CHECK(complaint_about("[1, 2]").message.find("the top level must be an object") != std::string::npos);
  CHECK(complaint_about(row + "\n" + row + " " + row).message.find("rows.jsonl: line 2, column ") == 0);
  CHECK(complaint_about(text_of_file(std::string(HBMSCOPE_SOURCE_DIR) + "/reports/h200/peers.jsonl")).message ==
        "rows.jsonl: line 1: /schema_version: is missing: this is no result");
  CHECK(complaint_about(text_of_file(std::string(HBMSCOPE_SOURCE_DIR) + "/reports/h200/probe.json"))
            .message.find("/roofs: makes this a probe of a GPU, which is no result") != std::string::npos);
  CHECK_THROWS_AS(read_results("/nowhere/rows.jsonl"), Error);
  CHECK_THROWS_AS(read_results(HBMSCOPE_SOURCE_DIR), Error);
}

TEST_CASE("scenario run --json holds a result for each of its runs") {
  const TemporaryFolder folder;
  const json document = json::parse(run_program(words("scenario run lesson-8k --json -")).out);
  REQUIRE(document["runs"].size() == 2);
  for (const int indent : {2, -1}) {
    CAPTURE(indent);
    const std::vector<Result> results = read_results(folder.write("scenario.json", document.dump(indent) + "\n"));
    REQUIRE(results.size() == 2);
    CHECK(results[0].where.ends_with("/runs/0"));
    CHECK(results[1].algorithms.at(0).name == document["runs"][1]["algorithms"][0]["name"]);
  }
  json broken = document;
  broken["runs"][1].erase("gpu");
  CHECK(complaint_about(broken.dump(1)).message.find("rows.jsonl: /runs/1: /gpu") == 0);
  broken["runs"] = 3;
  CHECK(complaint_about(broken.dump(1)).message == "rows.jsonl: /runs: must be a list, got the number 3");
  broken["runs"] = json::array();
  CHECK(complaint_about(broken.dump(1)).message == "rows.jsonl: holds no result");
}

TEST_CASE("brackets in texts do not make a document of a line") {
  json row = small_row();
  row["meta"]["git"] = "a { b [ \" \\ c";
  CHECK(complaint_about(row.dump() + "\n" + row.dump()).message == "nothing");
}
