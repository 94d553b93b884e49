// tests/data/golden.jsonl holds 400 random shapes, 11 plans each, with bytes that an independent program in another
// language computed; its closed forms were checked against brute-force loop counts.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/batch.hpp"
#include "cli/batch_stream.hpp"
#include "core/error.hpp"
#include "model/algorithm.hpp"
#include "scenario/batch_line.hpp"
#include "simulate/traffic_counter.hpp"

using namespace hbmscope;
using nlohmann::json;

namespace {

const std::vector<std::string>& golden_lines() {
  static const std::vector<std::string> lines = [] {
    std::ifstream file(HBMSCOPE_SOURCE_DIR "/tests/data/golden.jsonl");
    std::vector<std::string> read;
    for (std::string line; std::getline(file, line);) read.push_back(line);
    return read;
  }();
  return lines;
}

struct Answer {
  std::vector<json> lines;
  std::int64_t asked, failed;
};

/// The whole command but for its files, with the input in pieces of `piece` bytes.
Answer answer(const std::string& input, std::size_t piece = 65536) {
  BatchStream stream;
  std::string output;
  for (std::size_t at = 0; at < input.size(); at += piece)
    stream.feed(std::string_view(input).substr(at, piece), output);
  stream.finish(output);
  Answer got{{}, stream.lines(), stream.failed()};
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) got.lines.push_back(json::parse(line));
  return got;
}

json request(std::string_view algorithm, json plan, json shape_changes = json::object()) {
  json line = {{"shape",
                {{"batch", 1},
                 {"num_heads", 4},
                 {"num_kv_heads", 2},
                 {"seqlen_q", 1000},
                 {"seqlen_kv", 1000},
                 {"head_dim", 64},
                 {"dtype", "fp16"}}},
               {"algorithm", algorithm},
               {"plan", std::move(plan)}};
  line["shape"].update(shape_changes);
  return line;
}

const json kTiles = {{"block_q", 128}, {"block_kv", 128}};

std::string error_of(const std::string& line) {
  const Answer got = answer(line);
  REQUIRE(got.lines.size() == 1);
  REQUIRE(got.failed == 1);
  CHECK(got.lines[0].size() == 2);
  CHECK(got.lines[0]["line"] == 1);
  return got.lines[0].value("error", "");
}

/// Tiles that a walk would look at, about.
std::int64_t walk_cost(const std::vector<KernelWalk>& kernels) {
  std::int64_t cost = 0;
  for (const KernelWalk& k : kernels) cost += k.num_ctas * k.passes_per_cta * k.tiles_per_pass;
  return cost;
}

}  // namespace

TEST_CASE("every golden line comes out equal in all of its fields") {
  REQUIRE(golden_lines().size() >= 4000);
  std::string input;
  for (const std::string& line : golden_lines()) input += line + "\n";
  const Answer got = answer(input);
  CHECK(got.failed == 0);
  REQUIRE(got.lines.size() == golden_lines().size());
  for (std::size_t i = 0; i < got.lines.size(); ++i) {
    CAPTURE(i);
    REQUIRE(got.lines[i] == json::parse(golden_lines()[i]));
  }
}

TEST_CASE("walking the tiles of the smaller golden shapes gives the golden bytes too") {
  constexpr std::int64_t kMostTiles = 20'000;
  int walked = 0;
  for (const std::string& text : golden_lines()) {
    const BatchLine line = parse_batch_line(text);
    const Algorithm& a = algorithm(line.algorithm);
    const std::vector<KernelWalk> kernels = a.walk(line.shape, line.plan);
    if (walk_cost(kernels) > kMostTiles) continue;
    ++walked;
    const Traffic counted = total(simulate_sm_l2(kernels));
    const json golden = json::parse(text)["traffic"];
    for (const TensorInfo& tensor : kTensors) {
      const json bytes = golden.value(std::string(tensor.name), json{{"read", 0}, {"write", 0}});
      CAPTURE(text);
      CAPTURE(tensor.name);
      REQUIRE(counted[tensor.tensor].read.value() == bytes["read"].get<std::int64_t>());
      REQUIRE(counted[tensor.tensor].write.value() == bytes["write"].get<std::int64_t>());
    }
  }
  CHECK(walked > 2000);
}

TEST_CASE("the ragged shape of the contract reads K and V once for each of its 8 query tiles, and Q once") {
  const Answer got = answer(request("flash_v2", kTiles, {{"num_heads", 1}, {"num_kv_heads", 1}}).dump());
  REQUIRE(got.lines.size() == 1);
  const json& t = got.lines[0]["traffic"];
  CHECK(t["Q"]["read"] == 1000 * 64 * 2);
  CHECK(t["K"]["read"] == 8 * 1000 * 64 * 2);
  CHECK(t["LSE"]["write"] == 1000 * 4);
  CHECK(t.size() == 5);  // a tensor without bytes is left out
  CHECK(got.lines[0]["live_pairs"] == 1000 * 1000);
  CHECK(got.lines[0]["compulsory"] == 4 * 1000 * 64 * 2);
}

TEST_CASE("a backward algorithm has the compulsory bytes of the backward pass: Q, K, V, dO in and dQ, dK, dV out") {
  const Answer got = answer(request("flash_v2_bwd", kTiles, {{"num_heads", 1}, {"num_kv_heads", 1}}).dump());
  CHECK(got.lines[0]["compulsory"] == 7 * 1000 * 64 * 2);
}

TEST_CASE("shape and plan come back as they were given, unknown keys of the shape too") {
  json line =
      request("naive", json::object(), {{"note", "caf\u00e9 \"x\"\n"}, {"weight", 0.5}, {"list", {1, nullptr, true}}});
  line["id"] = 7;
  const Answer got = answer(line.dump());
  CHECK(got.lines[0]["shape"] == line["shape"]);
  CHECK(got.lines[0]["plan"] == json::object());
  CHECK_FALSE(got.lines[0].contains("id"));
  line.erase("plan");
  CHECK(answer(line.dump()).lines[0]["plan"] == json::object());
}

TEST_CASE(
    "the output does not depend on how the input arrives, and neither CRLF nor a missing last line feed matters") {
  const std::string good = request("flash_v2", kTiles).dump();
  const std::string input = good + "\r\n\n \t\r\n{oops\n" + good;
  const Answer whole = answer(input);
  REQUIRE(whole.lines.size() == 3);
  CHECK(whole.asked == 3);
  CHECK(whole.failed == 1);
  CHECK(whole.lines[0] == whole.lines[2]);
  CHECK(whole.lines[1]["line"] == 4);  // blank lines are skipped, but they are lines
  for (const std::size_t piece : {1UL, 2UL, 7UL, 100UL}) {
    CAPTURE(piece);
    CHECK(answer(input, piece).lines == whole.lines);
  }
  CHECK(answer("").lines.empty());
  CHECK(answer("\n\n").asked == 0);
}

TEST_CASE("a line beyond 1 MiB is refused without being kept, and the next one is read as usual") {
  const std::string good = request("naive", json::object()).dump();
  const std::string padded = std::string(BatchStream::kMaxLineBytes - good.size(), ' ') + good;
  CHECK(answer(padded + "\n").failed == 0);
  for (const std::size_t piece : {4096UL, 1UL << 22}) {
    const Answer got = answer(good + "\n" + padded + " \n" + good + "\n" + padded + " ", piece);
    REQUIRE(got.lines.size() == 4);
    CHECK(got.failed == 2);
    CHECK(got.lines[1]["error"].get<std::string>().starts_with("the line is longer than 1 MiB"));
    CHECK(got.lines[1]["line"] == 2);
    CHECK(got.lines[2].contains("traffic"));
    CHECK(got.lines[3]["line"] == 4);
  }
}

TEST_CASE("a bad line says what is wrong and what to do about it") {
  CHECK(error_of(request("flashv3", kTiles).dump()) ==
        "/algorithm: does not know \"flashv3\"; did you mean \"flash_v3\"?");
  CHECK(error_of(request("flash_v2", {{"block_kv", 128}}).dump())
            .starts_with("/plan/block_q: is missing, and flash_v2 works in tiles; give both"));
  CHECK(error_of(request("split_kv", {{"block_q", 128}}).dump()).starts_with("/plan/block_kv: is missing"));
  CHECK(error_of(request("flash_v2", {{"blok_q", 128}}).dump()) ==
        "/plan/blok_q: is not a key of a plan; did you mean \"block_q\"?");
  CHECK(error_of(request("naive", json::object(), {{"batch", 0}}).dump())
            .starts_with("/shape/batch: must be at least 1, got 0"));
  CHECK(error_of("{\"shape\": \xff}").starts_with("column 11: "));
  CHECK(error_of(std::string("\0\0", 2)).starts_with("column 1: "));
  CHECK(error_of("7").starts_with("the top level must be an object"));
}

TEST_CASE("bytes beyond 64 bits and endless sums are errors of their line, never wrapped numbers and never a wait") {
  const std::int64_t large = std::int64_t{1} << 32;
  const json huge = {
      {"batch", large}, {"num_heads", large}, {"num_kv_heads", large}, {"seqlen_q", large}, {"seqlen_kv", large}};
  CHECK(error_of(request("naive", json::object(), huge).dump()).find("does not fit 64 bits") != std::string::npos);
  for (const Algorithm& a : algorithms()) {
    CAPTURE(a.name);
    const json one_row = {{"block_q", 1}, {"block_kv", 1}};
    if (a.name.starts_with("naive")) continue;
    CHECK(error_of(request(a.name, one_row, {{"seqlen_q", large}, {"seqlen_kv", large}}).dump())
              .starts_with("/plan/block_q: leaves"));
    const json packed = {{"num_heads", std::int64_t{1} << 40}, {"num_kv_heads", 1}, {"seqlen_q", large}};
    CHECK(error_of(request(a.name, {{"block_q", 128}, {"block_kv", 128}, {"pack_gqa", true}}, packed).dump())
              .find("64 bits") != std::string::npos);
  }
}
