// Sweeps from outside: which rows come, in which order, and what they hold.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "json_schema.hpp"
#include "sweep_checks.hpp"

using namespace hbmscope::testing;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// docs/schema/sweep.schema.json with what it takes from run.schema.json beside it.
JsonSchema row_schema() {
  const std::string folder = std::string(HBMSCOPE_SOURCE_DIR) + "/docs/schema/";
  std::string text = text_of_file(folder + "sweep.schema.json");
  const std::string elsewhere = "run.schema.json#";
  for (std::size_t at = text.find(elsewhere); at != std::string::npos; at = text.find(elsewhere, at))
    text.replace(at, elsewhere.size(), "#");
  json schema = json::parse(text);
  const json run = json::parse(text_of_file(folder + "run.schema.json"));
  for (const auto& [name, definition] : run["$defs"].items()) schema["$defs"].emplace(name, definition);
  return JsonSchema(schema);
}

json run_of(const std::string& options) {
  const Outcome outcome = run_program(words("run --json - " + options));
  REQUIRE(outcome.code == 0);
  return json::parse(outcome.out);
}

/// Is every member of `part` one of `whole`, with the same value? Lists have the same elements in the same order. What
/// a row says of kernels that did not run is the same on every machine, and run's words are those of this one.
void check_part_of(const json& part, const json& whole, const std::string& at) {
  CAPTURE(at);
  if (part.is_object()) {
    REQUIRE(whole.is_object());
    for (const auto& [key, member] : part.items()) {
      REQUIRE(whole.contains(key));
      check_part_of(member, whole[key], at + "/" + key);
    }
  } else if (part.is_array()) {
    REQUIRE(whole.is_array());
    REQUIRE(part.size() == whole.size());
    for (std::size_t i = 0; i < part.size(); ++i) check_part_of(part[i], whole[i], at + "/" + std::to_string(i));
  } else if (!(part.is_string() && has(part.get<std::string>(), "runs no GPU kernel"))) {
    CHECK(part == whole);
  }
}

void check_row_is_run(json row, json run) {
  row.erase("sweep");
  for (json* result : {&row, &run})
    result->at("meta") = {{"version", result->at("meta").at("version")}, {"git", result->at("meta").at("git")}};
  check_part_of(row, run, "");
}

}  // namespace

TEST_CASE("a row holds what run says of its point, by the closed forms, the simulator, and on several GPUs") {
  struct Case {
    const char *sweep, *run;  ///< the sweep's last point, and that point alone
  };
  for (const Case& c : {
           Case{"--seqlen 512,1k --head-dim 32,64", "--seqlen 1k --head-dim 64 --engine model"},
           Case{"--heads 8 --kv-heads 8,2 --causal off,on --dtype fp16,bf16",
                "--heads 8 --kv-heads 2 --causal --dtype bf16 --engine model"},
           Case{"--engine sim --seqlen 256,300 --gpu h100,a100 --l2 none,1MiB",
                "--engine sim --seqlen 300 --gpu a100 --l2 1MiB"},
           Case{"--pass forward,backward --seqlen 1k", "--pass backward --seqlen 1k --engine model"},
           Case{"--seqlen 2k --window 63 --window 127,5 --align bottom-right,top-left",
                "--seqlen 2k --window 127,5 --align top-left --engine model"},
           Case{"--seqlen 1k --heads 4 --kv-heads 2 --pack-gqa on,off --algorithm flash_v2,split_kv",
                "--seqlen 1k --heads 4 --kv-heads 2 --no-pack-gqa --algorithm flash_v2,split_kv --engine model"},
           Case{"--algorithm naive --gemm-tile 64,64 --gemm-tile 128,256 --softmax-reads 1:3:1 --scale-pass off,on",
                "--algorithm naive --gemm-tile 128,256 --softmax-reads 3 --scale-pass --engine model"},
           Case{"--seqlen 64 --batch 2 --kv-lengths 3,8 --kv-lengths 64,1",
                "--seqlen 64 --batch 2 --kv-lengths 64,1 --engine model"},
           Case{"--seqlen 4k --algorithm flash_v1,flash_v2 --sram 64KiB:128KiB:x2 --variant paper,released",
                "--seqlen 4k --algorithm flash_v1,flash_v2 --sram 128KiB --variant released --engine model"},
       }) {
    CAPTURE(c.sweep);
    const std::vector<json> rows = parsed_rows(rows_of(c.sweep));
    REQUIRE(rows.size() > 1);
    CHECK(rows.back()["sweep"]["status"] == "ok");
    check_row_is_run(rows.back(), run_of(c.run));
    // Another point is another result: the axes do reach the model.
    CHECK(rows.back()["sweep"]["key"] != rows.front()["sweep"]["key"]);
    CHECK((rows.back()["algorithms"] != rows.front()["algorithms"] || rows.back()["shape"] != rows.front()["shape"]));
  }
}

TEST_CASE("rows come in the order of their indexes, the last axis of the command line fastest") {
  std::size_t index = 0;
  const std::vector<json> rows = parsed_rows(rows_of("--head-dim 64,32 --seqlen 64:256:64 --causal on,off"));
  REQUIRE(rows.size() == 16);
  for (const int d : {64, 32}) {
    for (const int N : {64, 128, 192, 256}) {
      for (const bool causal : {true, false}) {
        const json& row = rows[index];
        CHECK(row["sweep"]["index"] == index);
        CHECK(row["sweep"]["points"] == 16);
        CHECK(row["sweep"]["axes"] == json({{"head_dim", d}, {"seqlen", N}, {"causal", causal}}));
        CHECK(row["shape"]["head_dim"] == d);
        CHECK(row["shape"]["seqlen_q"] == N);
        CHECK(row["shape"]["live_pairs"] == (causal ? N * (N + 1) / 2 : N * N));
        // Q, K and V once, O once, in fp16.
        CHECK(row["algorithms"][0]["traffic"][0]["total_bytes"] == 4 * N * d * 2);
        ++index;
      }
    }
  }
}

TEST_CASE("the bytes of a sweep do not depend on how many threads compute it, nor on how numbers are written") {
  const std::string one = rows_of("--seqlen 64:8192:64 --heads 3 --kv-heads 1,2,3 --jobs 1", 5);
  CHECK(one == rows_of("--seqlen 64:8k:64 --heads 3 --kv-heads 1:3:1 --jobs 7", 5));
  CHECK(one == rows_of("--seqlen 64:8k:64 --heads 3 --kv-heads 1,2 --kv-heads 3", 5));
  std::set<std::string> keys;
  for (const json& row : parsed_rows(one)) keys.insert(row["sweep"]["key"].get<std::string>());
  CHECK(keys.size() == 3 * 128);
}

TEST_CASE("rows and failed rows are what docs/schema/sweep.schema.json says") {
  const JsonSchema by = row_schema();
  std::size_t failed = 0;
  for (const char* options :
       {"--seqlen 512,1k --heads 4 --kv-heads 1:4:1",
        "--engine sim --seqlen 128,256 --gpu h100,rtx-4090 --dtype fp16,fp8",
        "--pass forward,backward,both,decode --seqlen 1k --causal on,off",
        "--seqlen 256 --full --engine cpu --heads 1,2", "--heads 4 --kv-heads 3 --full --seqlen 64,128",
        "--seqlen 64 --window 3,-1 --window 3,4"}) {
    CAPTURE(options);
    const Outcome outcome = run_program(words(std::string("sweep ") + options));
    for (const json& row : parsed_rows(outcome.out)) {
      for (const std::string& error : by.errors(row)) FAIL_CHECK(error);
      if (row["sweep"]["status"] == "failed") ++failed;
    }
  }
  CHECK(failed == 2 * 1 + 2);
  json row = parsed_rows(rows_of("--seqlen 64"))[0];
  for (const char* pointer : {"/sweep/index", "/sweep/key", "/algorithms/0/traffic/0/total_bytes", "/shape",
                              "/algorithms/0/memory/peak_bytes", "/gpu/name", "/meta/version", "/sweep/status"}) {
    CAPTURE(pointer);
    json changed = row;
    changed[json::json_pointer(pointer)] = nullptr;
    CHECK_FALSE(by.errors(changed).empty());
  }
}

// Public case D03: a long sweep in which one point fails.
TEST_CASE("a point that fails is a row with null metrics and its reason, the sweep goes on, and the exit code tells") {
  const Outcome outcome = run_program(words("sweep --heads 4,6,8 --kv-heads 4,3"));
  check_complaint(outcome, 5, "3 of 6 points failed");
  const std::vector<json> rows = parsed_rows(outcome.out);
  REQUIRE(rows.size() == 6);
  const bool divides[]{true, false, false, true, true, false};  // 4|4 3|4 4|6 3|6 4|8 3|8
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    CHECK(rows[i]["sweep"]["index"] == i);
    CHECK(rows[i]["sweep"]["status"] == (divides[i] ? "ok" : "failed"));
    CHECK(rows[i]["shape"].is_null() == !divides[i]);
    CHECK(rows[i]["algorithms"].empty() == !divides[i]);
    CHECK(rows[i]["sweep"]["reason"].is_null() == divides[i]);
    if (!divides[i]) CHECK(has(rows[i]["sweep"]["reason"].get<std::string>(), "--kv-heads"));
  }
  // A tile that does not fit SMEM, and bytes beyond 64 bits.
  check_complaint(run_program(words("sweep --block-q 64,4096 --algorithm flash_v2")), 5, "1 of 2 points failed");
  check_complaint(run_program(words("sweep --seqlen 64M --batch 1,1G --algorithm naive")), 5, "1 of 2 points failed");
  check_complaint(run_program(words("sweep --heads 4 --kv-heads 3,8")), 5, "2 of 2 points failed");
}

TEST_CASE("what no point could take is an error of the command line, before anything is computed") {
  for (const char* options : {"--seqlen 0,64",
                              "--seqlen 64,x",
                              "--heads 0",
                              "--head-dim 64,70000",
                              "--kv-heads 0,1",
                              "--dtype fp16,fp12",
                              "--causal maybe",
                              "--window 3 --window 4,-2",
                              "--window 1,2,3",
                              "--kv-lengths 3,x",
                              "--pass forward,sideways",
                              "--align top-left,middle",
                              "--algorithm naive,flash_v9",
                              "--engine fast",
                              "--gpu h100,h900",
                              "--gpu h200,H200",
                              "--block-q 0",
                              "--block-q 64,2000000",
                              "--gemm-tile 1,2,3",
                              "--softmax-reads 1,4",
                              "--l2 many",
                              "--sram 1,-1",
                              "--order up",
                              "--seqlen 64,64",
                              "--seqlen 64,,64",
                              "--block-q 64,128 --algorithm naive",
                              "--seed 3",
                              "--attention-share 0.3",
                              "--engine cpu",
                              "--jobs 0",
                              "--jobs 100000",
                              "--max-points 0 --seqlen 1",
                              "--shard 3",
                              "--shard 9/8",
                              "--resume",
                              "-o {shard}.jsonl",
                              "--seqlen 1:2000000:1",
                              "--seqlen",
                              "--gpu",
                              "extra"}) {
    CAPTURE(options);
    const Outcome outcome = run_program(words(std::string("sweep ") + options));
    check_complaint(outcome, 2, "");
    CHECK(outcome.out.empty());
  }
  check_complaint(run_program(words("sweep --gpu nowhere.json")), 3, "no such file");
  check_complaint(run_program(words("sweep --seqlen 1:2000:1 --head-dim 1:1000:1")), 2,
                  "2,000,000 points, more than the 1,000,000", "--max-points");
}

TEST_CASE("--max-points is a cap that can be raised, and --dry-run computes nothing") {
  check_complaint(run_program(words("sweep --seqlen 1:11:1 --max-points 10")), 2, "--seqlen: has more than 10 values");
  check_complaint(run_program(words("sweep --seqlen 1,2 --heads 1:6:1 --max-points 10")), 2, "12 points");
  check_complaint(run_program(words("sweep --seqlen 1,2 --max-points 0")), 2,
                  "--max-points: must be at least 1, got 0");
  const Outcome outcome = run_program(
      words("sweep --seqlen 1:2000:1 --head-dim 1:1000:1 --causal --max-points 3000000 --shard 2/4 --dry-run"));
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  const std::vector<std::string> lines = lines_of(outcome.out);
  CHECK(has(lines[0], "2,000,000 points: --seqlen (2,000) x --head-dim (1,000)"));
  CHECK(has(lines[1], "shard 2/4 has 500,000"));
  CHECK(has(outcome.out, "\n1: hbmscope run --seqlen 1 --head-dim 2 --causal --engine model\n"));
  CHECK(has(outcome.out, "\n5: hbmscope run --seqlen 1 --head-dim 6 --causal --engine model\n"));
}

TEST_CASE("the command line that --dry-run and --full show gives the point by itself") {
  const TemporaryFolder folder;
  const std::string gpu = folder.file("my gpu.json");
  REQUIRE(run_program({"gpu", "show", "h200", "--json", gpu}).code == 0);
  const Outcome outcome =
      run_program({"sweep",    "--full",    "--seqlen",          "300", "--gpu",      gpu, "--window",   "5,-1",
                   "--dtype",  "bf16,fp16", "--heads",           "4",   "--kv-heads", "2", "--pack-gqa", "off",
                   "--engine", "sim",       "--attention-share", "0.3"});
  REQUIRE(outcome.code == 0);
  for (json row : parsed_rows(outcome.out)) {
    std::vector<std::string> argv = row["meta"]["argv"];
    REQUIRE(argv[0] == "hbmscope");
    argv.erase(argv.begin());
    argv.insert(argv.end(), {"--json", "-"});
    const Outcome alone = run_program(argv);
    REQUIRE(alone.code == 0);
    CHECK(json::parse(alone.out)["amdahl"] == row["amdahl"]);
    CHECK(json::parse(alone.out)["paper"] == row["paper"]);
    check_row_is_run(json{{"meta", row["meta"]}, {"shape", row["shape"]}, {"algorithms", row["algorithms"]}},
                     json::parse(alone.out));
  }
}

TEST_CASE("rows go to a file that is not there yet, and nowhere else") {
  const TemporaryFolder folder;
  const std::string path = folder.file("rows.jsonl"), rows = rows_of("--seqlen 64:1024:64");
  CHECK(run_program({"sweep", "--seqlen", "64:1024:64", "-o", path}).code == 0);
  CHECK(text_of_file(path) == rows);
  check_complaint(run_program({"sweep", "--seqlen", "64:1024:64", "-o", path}), 2, "is there already", "--resume");
  CHECK(text_of_file(path) == rows);
  check_complaint(run_program({"sweep", "--seqlen", "64", "-o", folder.file("no/rows.jsonl")}), 1, "cannot create");
  check_complaint(run_program({"sweep", "--seqlen", "64", "-o", fs::path(path).parent_path().string()}), 1,
                  "directory");
  const std::string gpu = folder.file("gpu.json");
  REQUIRE(run_program({"gpu", "show", "h200", "--json", gpu}).code == 0);
  check_complaint(run_program({"sweep", "--seqlen", "64", "--gpu", gpu, "-o", gpu, "--resume"}), 2,
                  "is read by this command");
  CHECK(run_program({"sweep", "--seqlen", "64,128", "-o", "/dev/full"}).code == 1);
  Call closed;
  closed.arguments = words("sweep --seqlen 64:8192:64");
  closed.closed_pipe = true;
  closed.ignore_sigpipe = true;
  const Outcome outcome = run_program(closed);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
}

TEST_CASE("kernels are asked for where there is a GPU, and refused before a row is written where there is none") {
  const Outcome run = run_program(words("run --seqlen 64 --engine gpu"));
  if (run.code == 4) {
    const Outcome outcome = run_program(words("sweep --seqlen 64,128 --engine gpu"));
    check_complaint(outcome, 4, "--engine gpu");
    CHECK(outcome.out.empty());
    check_complaint(run_program(words("sweep --seqlen 64,128 --require gpu")), 4, "--require gpu");
    return;
  }
  REQUIRE(run.code == 0);
  check_complaint(run_program(words("sweep --seqlen 64,128 --engine gpu --jobs 2")), 2, "one point at a time");
  for (const json& row : parsed_rows(rows_of("--seqlen 64,128 --engine gpu --algorithm naive,flash_v2"))) {
    CHECK(row["meta"]["device"].is_string());
    for (const json& algorithm : row["algorithms"]) CHECK(algorithm["time"]["measured_median_s"].is_number());
  }
}

TEST_CASE("progress and the time that is left are shown on a terminal, and only there") {
  // As many points as take well over a second on this machine.
  for (int heads = 20;; heads *= 2) {
    REQUIRE(heads < 100'000);
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(terminal >= 0);
    REQUIRE(::grantpt(terminal) == 0);
    REQUIRE(::unlockpt(terminal) == 0);
    const std::string side = ::ptsname(terminal);
    const std::string last = "1:" + std::to_string(heads) + ":1";
    const auto begin = std::chrono::steady_clock::now();
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const int shown = ::open(side.c_str(), O_RDWR);
      ::dup2(shown, STDERR_FILENO);
      ::execl(HBMSCOPE_BINARY, "hbmscope", "sweep", "--seqlen", "64:64000:64", "--causal", "--heads", last.c_str(),
              "-o", "/dev/null", nullptr);
      ::_exit(127);
    }
    std::string said;
    int status = 0;
    for (bool ended = false; !ended;) {
      ended = ::waitpid(child, &status, WNOHANG) == child;
      pollfd polled{terminal, POLLIN, 0};
      std::array<char, 4096> buffer{};
      while (::poll(&polled, 1, ended ? 0 : 50) > 0) {
        const ssize_t count = ::read(terminal, buffer.data(), buffer.size());
        if (count <= 0) break;
        said.append(buffer.data(), static_cast<std::size_t>(count));
      }
    }
    ::close(terminal);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1800)) continue;
    CHECK(has(said, " points, "));
    CHECK(has(said, " s left"));
    CHECK(said.ends_with("\r\x1b[K"));  // it takes its line away
    break;
  }
}

TEST_CASE("shards are the sweep's own rows, and Slurm's variables are read where --shard auto asks for it") {
  const std::string options = "sweep --seqlen 64:640:64 --heads 1,2";
  const std::vector<std::string> all = lines_of(run_program(words(options)).out);
  REQUIRE(all.size() == 20);
  const auto part = [&](std::size_t number, std::size_t of) {
    std::string text;
    for (std::size_t i = number - 1; i < all.size(); i += of) text += all[i] + "\n";
    return text;
  };
  CHECK(run_program(words(options + " --shard 2/3")).out == part(2, 3));
  CHECK(run_program(words(options + " --shard 25/30")).out.empty());
  const auto in_slurm = [&](const std::string& more, std::vector<std::pair<std::string, std::string>> variables) {
    Call call;
    call.arguments = words(options + more);
    call.environment = std::move(variables);
    return run_program(call);
  };
  const std::vector<std::pair<std::string, std::string>> array{{"SLURM_ARRAY_TASK_ID", "3"},
                                                               {"SLURM_ARRAY_TASK_COUNT", "4"},
                                                               {"SLURM_ARRAY_TASK_MIN", "1"},
                                                               {"SLURM_ARRAY_TASK_MAX", "4"}};
  Outcome outcome = in_slurm(" --shard auto", array);
  CHECK(outcome.out == part(3, 4));
  CHECK(lines_of(outcome.err).size() == 1);
  CHECK(has(outcome.err, "shard 3/4: task 3 of 4 of this Slurm array (SLURM_ARRAY_TASK_ID=3)"));
  // Without being asked a sweep is whole, and says what it did not look at.
  outcome = in_slurm("", array);
  CHECK(outcome.out == part(1, 1));
  CHECK(has(outcome.err, "computes all points"));
  outcome = in_slurm(" --shard auto", {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}});
  CHECK(outcome.out == part(2, 2));
  outcome = in_slurm(" --shard auto", {{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}});
  CHECK(outcome.out == part(1, 1));
  CHECK(has(outcome.err, "all points"));
  CHECK(in_slurm("", {{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}}).err.empty());
  check_complaint(in_slurm(" --shard auto", {{"SLURM_ARRAY_TASK_ID", "3"}}), 2, "SLURM_ARRAY_TASK_COUNT is not");
}
