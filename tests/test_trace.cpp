// The schedule of tiles as events: they add up to what the algebra and the simulated L2 say, whoever writes them down.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli_checks.hpp"
#include "json_schema.hpp"

using namespace hbmscope::testing;
using nlohmann::json;

namespace {

json lines_to_json(const std::string& text) {
  json all = json::array();
  for (const std::string& line : lines_of(text)) all.push_back(json::parse(line));
  return all;
}

/// Bytes by "stage tensor op" of a member of the events.
using Sums = std::map<std::string, std::int64_t>;
Sums sums_of(const json& events, const char* member) {
  Sums sums;
  for (const json& e : events) {
    const auto bytes = e.at(member).get<std::int64_t>();
    const std::string key = e.at("algorithm").get<std::string>() + " " + e.at("tensor").get<std::string>() + " " +
                            e.at("op").get<std::string>();
    if (bytes > 0) sums[key] += bytes;
  }
  return sums;
}

/// The same of what `run` says of its algorithms.
Sums sums_of_run(const std::string& options, const std::string& boundary, const std::string& provenance) {
  const Outcome outcome = run_program(words("run --engine sim --json - " + options));
  REQUIRE(outcome.code == 0);
  Sums sums;
  const json run = json::parse(outcome.out);
  for (const json& a : run["algorithms"]) {
    for (const json& t : a["traffic"]) {
      if (t["boundary"] != boundary || t["provenance"] != provenance || t["plan"] != a["plan"]) continue;
      for (const auto& [tensor, bytes] : t["tensors"].items()) {
        for (const char* op : {"read", "write"}) {
          const auto n = bytes[std::string(op) + "_bytes"].get<std::int64_t>();
          if (n > 0) sums[a["name"].get<std::string>() + " " + tensor + " " + op] += n;
        }
      }
    }
  }
  return sums;
}

}  // namespace

TEST_CASE("lines of a trace: every algorithm's bytes by tensor are those of run, at both boundaries") {
  for (const std::string options :
       {"--seqlen 1k --algorithm naive,flash_v1,flash_v2", "--seqlen 700 --causal --heads 3 --head-dim 64 --gpu a100",
        "--seqlen 1k --heads 4 --kv-heads 2 --window 100 --l2 300KiB --algorithm flash_v2,flash_v1,split_kv",
        "--pass backward --seqlen 300 --algorithm naive_bwd,flash_v1_bwd,flash_v2_bwd --l2-state warm",
        "--pass decode --seqlen 2k --heads 8 --kv-heads 2 --algorithm split_kv --l2 none"}) {
    CAPTURE(options);
    const bool named = has(options, "--algorithm");
    const Outcome outcome = run_program(words("trace " + options));
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    const json events = lines_to_json(outcome.out);
    const std::string same = options + (named ? "" : " --algorithm flash_v2");
    CHECK(sums_of(events, "bytes") == sums_of_run(same, "sm_l2", "closed_form"));
    CHECK(sums_of(events, "hbm_bytes") == sums_of_run(same, "l2_hbm", "simulated"));
  }
}

TEST_CASE("the events of flash_v2 are its loop nest: Q, then K and V of each key tile, then O and LSE") {
  // 3 query tiles and 2 key tiles of 128 rows of 64 fp16 elements; 4-byte statistics.
  const Outcome outcome =
      run_program(words("trace --seqlen-q 384 --seqlen-kv 256 --head-dim 64 --block-q 128 --block-kv 128"));
  const json events = lines_to_json(outcome.out);
  std::vector<json> cta;
  for (const json& e : events) {
    if (e["cta"] == 1) cta.push_back(e);
  }
  constexpr std::int64_t tile = 128 * 64 * 2;
  const std::vector<std::tuple<std::string, std::int64_t, std::string, std::int64_t, std::int64_t>> expected{
      {"Q", 1, "read", tile, 0}, {"K", 0, "read", tile, 0},  {"V", 0, "read", tile, 0},  {"K", 1, "read", tile, 1},
      {"V", 1, "read", tile, 1}, {"O", 1, "write", tile, 2}, {"LSE", 1, "write", 512, 2}};
  REQUIRE(cta.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [tensor, row, op, bytes, step] = expected[i];
    CHECK(cta[i]["tensor"] == tensor);
    CHECK(cta[i]["row"] == row);
    CHECK(cta[i]["op"] == op);
    CHECK(cta[i]["bytes"] == bytes);
    CHECK(cta[i]["step"] == step);
    CHECK(cta[i]["sm"] == 1);
    CHECK(cta[i]["batch_head"] == 0);
  }
  // CTA 0 asks first, so K and V are in L2 when CTA 1 does.
  CHECK(cta[0]["l2"] == "miss");
  CHECK(cta[1]["l2"] == "hit");
}

TEST_CASE("each line keeps to its schema, and the schema would notice") {
  const JsonSchema by(json::parse(text_of_file(std::string(HBMSCOPE_SOURCE_DIR) + "/docs/schema/trace.schema.json")));
  const json events = lines_to_json(run_program(words("trace --seqlen 512 --algorithm naive,flash_v1")).out);
  bool written_back = false;
  for (const json& e : events) {
    for (const std::string& error : by.errors(e)) FAIL_CHECK(e.dump() << ": " << error);
    written_back = written_back || e["l2"] == "write_back";
  }
  CHECK(written_back);
  for (const char* member : {"algorithm", "stage", "time", "sm", "tensor", "op", "bytes", "l2", "hbm_bytes"}) {
    json without = events[0];
    without.erase(member);
    CHECK_FALSE(by.errors(without).empty());
  }
  json odd = events[0];
  odd["l2"] = "perhaps";
  CHECK_FALSE(by.errors(odd).empty());
}

namespace {

std::int64_t nanoseconds(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

}  // namespace

TEST_CASE(
    "a Chrome trace holds the same bytes, in slices that come in order and nest, with counters that end on them") {
  for (const std::string options :
       {"--seqlen 1k --algorithm naive,flash_v1,flash_v2", "--seqlen 2k --heads 40 --causal --head-dim 64"}) {
    CAPTURE(options);
    const Outcome outcome = run_program(words("trace --chrome - " + options));
    CHECK(outcome.err.empty());
    const json trace = json::parse(outcome.out);
    CHECK(trace["displayTimeUnit"] == "ms");
    std::map<std::int64_t, std::string> processes;
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> threads;
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> open;  // ends of slices
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> last;
    Sums sm, hbm;
    std::map<std::int64_t, std::array<std::int64_t, 4>> by_process, counters;
    for (const json& e : trace["traceEvents"]) {
      const std::string ph = e["ph"];
      const auto pid = e["pid"].get<std::int64_t>();
      if (ph == "M") {
        if (e["name"] == "process_name") processes[pid] = e["args"]["name"];
        if (e["name"] == "thread_name") threads[{pid, e["tid"].get<std::int64_t>()}] = e["args"]["name"];
        continue;
      }
      REQUIRE(processes.count(pid) == 1);
      if (ph == "C") {
        const std::size_t first = e["name"] == "SM-L2 bytes" ? 0 : 2;
        for (const auto& [key, at] : {std::pair{"read", first}, std::pair{"write", first + 1}}) {
          const auto value = e["args"][key].get<std::int64_t>();
          CHECK(value >= counters[pid][at]);
          counters[pid][at] = value;
        }
        continue;
      }
      REQUIRE(ph == "X");
      const std::pair thread{pid, e["tid"].get<std::int64_t>()};
      REQUIRE(threads.count(thread) == 1);
      const std::int64_t begin = nanoseconds(e["ts"]), end = begin + nanoseconds(e["dur"]);
      CHECK(begin >= last[thread]);
      last[thread] = begin;
      std::vector<std::int64_t>& stack = open[thread];
      while (!stack.empty() && stack.back() <= begin) stack.pop_back();
      if (!stack.empty()) CHECK(end <= stack.back());
      stack.push_back(end);
      if (e["cat"] == "step") continue;
      const json& args = e["args"];
      const std::string algorithm = processes[pid].substr(0, processes[pid].find(' '));
      const std::string key = algorithm + " " + args["tensor"].get<std::string>() + " " + args["op"].get<std::string>();
      const auto a = args["bytes"].get<std::int64_t>(), b = args["hbm_bytes"].get<std::int64_t>();
      if (a > 0) sm[key] += a;
      if (b > 0) hbm[key] += b;
      const std::size_t write = args["op"] == "write" ? 1 : 0;
      by_process[pid][write] += a;
      by_process[pid][2 + write] += b;
    }
    CHECK(by_process == counters);
    const std::string same = options + (has(options, "--algorithm") ? "" : " --algorithm flash_v2");
    CHECK(sm == sums_of_run(same, "sm_l2", "closed_form"));
    CHECK(hbm == sums_of_run(same, "l2_hbm", "simulated"));
    const json& other = trace["otherData"];
    CHECK(other["tool"] == "hbmscope");
    std::size_t stages = 0;
    for (const json& algorithm : other["algorithms"]) stages += algorithm["stages"].size();
    CHECK(stages == processes.size());
  }
}

TEST_CASE("a schedule that is too long is refused with its number of events, before a byte is written") {
  // N = 512 in 128 x 128 tiles: 4 CTAs of Q, 4 times K and V, O and LSE.
  constexpr std::int64_t events = 4 * (1 + 4 * 2 + 2);
  const std::string at_limit = "trace --seqlen 512 --max-events " + std::to_string(events);
  CHECK(run_program(words(at_limit)).code == 0);
  const TemporaryFolder folder;
  const std::string path = folder.file("t.jsonl");
  const Outcome over =
      run_program({"trace", "--seqlen", "512", "--max-events", std::to_string(events - 1), "--jsonl", path});
  check_complaint(over, 2, std::to_string(events) + " events", "--max-events");
  CHECK(!std::filesystem::exists(path));
  check_complaint(run_program(words("trace --heads 64 --batch 64 --seqlen 64k")), 2, "events", "fewer heads");
  check_complaint(run_program(words("trace --heads 1000 --seqlen 4M")), 2, "events", "fewer heads");
  check_complaint(run_program(words("trace --seqlen 4G --block-q 1 --block-kv 1")), 2, "", "");
}

TEST_CASE("what a trace cannot do is said clearly") {
  const TemporaryFolder folder;
  check_complaint(run_program(words("trace --jsonl - --chrome -")), 2, "standard output");
  check_complaint(run_program({"trace", "--jsonl", folder.file("no/such/file")}), 1, "No such file");
  check_complaint(
      run_program({"trace", "--algorithm", "flash_v3", "--cluster", "2", "--html", folder.file("page.html")}), 2,
      "--cluster: has no effect on --html");
  check_complaint(run_program(words("trace --engine sim")), 2, "--engine");
  check_complaint(run_program(words("trace --kv-splits 2")), 2, "--kv-splits");
  check_complaint(run_program(words("trace --max-events 0")), 2, "--max-events: must be at least 1, got 0",
                  "from 1 on");
  const std::string gpu =
      folder.write("gpu.json", text_of_file(std::string(HBMSCOPE_SOURCE_DIR) + "/scenarios/gpu/a100_sxm_80gb.json"));
  check_complaint(run_program({"trace", "--gpu", gpu, "--chrome", gpu}), 2, "is read by this command");
}

TEST_CASE("a closed pipe ends a trace silently") {
  Call made = call("trace --seqlen 4k");
  made.closed_pipe = true;
  const Outcome outcome = run_program(made);
  CHECK(outcome.err.empty());
}

TEST_CASE("a long trace takes no more memory than a short one") {
  const auto peak_kib_after = [](const std::string& options) {
    CHECK(run_program(words("trace --jsonl /dev/null " + options)).code == 0);
    rusage usage{};
    REQUIRE(::getrusage(RUSAGE_CHILDREN, &usage) == 0);
    return usage.ru_maxrss;
  };
  // The most of any child so far, so the short ones go first.
  const long short_trace = peak_kib_after("--seqlen 8k");
  const long long_trace = peak_kib_after("--seqlen 8k --heads 32");  // 270,000 events of some 180 B
  CHECK(long_trace - short_trace < 8 * 1024);
}
