// Every embedded scenario holds, and would not hold with any other number; what is wrong with a file is said.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "analysis/from_scenario.hpp"
#include "core/error.hpp"
#include "process.hpp"
#include "report/run_json.hpp"
#include "report/scenario_report.hpp"
#include "scenario/embedded.hpp"
#include "scenario/scenario_file.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

namespace {

constexpr std::string_view kSmall = R"({"name": "small", "title": "T", "question": "Q?", "source": "S", "answer": "A.",
 "runs": [{"name": "one", "gpu": "H100 SXM", "engine": "model", "algorithms": ["naive", "flash_v2"],
           "shape": {"batch": 1, "num_heads": 1, "num_kv_heads": 1, "seqlen_q": 2, "seqlen_kv": 5, "head_dim": 16, "dtype": "fp16", "mask": {"kind": "causal"}}}],
 "expect": [{"path": "shape.live_pairs", "equals": 9, "because": "4 + 5 keys."}]})";

std::string with(std::string_view from, std::string_view to) {
  std::string text(kSmall);
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::vector<nlohmann::ordered_json> run_all(const Scenario& scenario) {
  std::vector<nlohmann::ordered_json> runs;
  for (std::size_t run = 0; run < scenario.runs.size(); ++run) runs.push_back(run_to_json(run_of(scenario, run), {}));
  return runs;
}

/// "message | hint" of the Error that reading, running and checking `text` ends in.
std::string complaint(const std::string& text) {
  try {
    const Scenario scenario = parse_scenario(text, "small.json");
    (void)check_expectations(scenario, run_all(scenario));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

void check_complaint(std::string_view from, std::string_view to, const std::string& start,
                     const std::string& part = "") {
  const std::string said = complaint(with(from, to));
  CAPTURE(said);
  CHECK(said.starts_with("small.json: " + start));
  CHECK(said.find(part) != std::string::npos);
}

/// The same expectation of a number that `value` does not meet.
Expectation altered(Expectation e, const nlohmann::ordered_json& value) {
  if (e.wanted.is_boolean()) {
    e.wanted = !e.wanted.get<bool>();
  } else if (e.wanted.is_string()) {
    e.wanted = e.wanted.get<std::string>() + "x";
  } else if (e.rule == Expectation::Rule::near) {
    e.wanted = e.wanted.get<double>() * (1 + e.within) / (1 - e.within) * (1 + 1e-9);
  } else if (e.wanted.is_number_integer() && value.is_number_integer()) {
    const auto off = e.rule == Expectation::Rule::at_most ? -1 : 1;
    e.wanted = value.get<std::int64_t>() + off;
  } else {
    const double off = e.rule == Expectation::Rule::at_most ? 1 - 1e-9 : 1 + 1e-9;
    e.wanted = value.get<double>() * off;
  }
  return e;
}

/// What `hbmscope scenario ARGUMENTS` says, on both streams.
Outcome hbmscope_says(const std::string& arguments) {
  Outcome outcome = run_program(words("scenario " + arguments));
  outcome.out += outcome.err;
  return outcome;
}

}  // namespace

TEST_CASE("every embedded scenario holds, and any other number in its place would be missed") {
  CHECK(embedded_scenarios().size() >= 14);
  for (const EmbeddedFile& file : embedded_scenarios()) {
    CAPTURE(file.name);
    const Scenario scenario = parse_scenario(file.text, file.name);
    CHECK(scenario.name == file.name);
    const std::vector<nlohmann::ordered_json> runs = run_all(scenario);
    const std::vector<ExpectationResult> results = check_expectations(scenario, runs);
    REQUIRE(results.size() == scenario.expect.size());
    Scenario wrong = scenario;
    for (std::size_t i = 0; i < results.size(); ++i) {
      CAPTURE(miss_words(scenario, scenario.expect[i], results[i]));
      CHECK(results[i].ok);
      wrong.expect[i] = altered(scenario.expect[i], results[i].value);
    }
    for (const ExpectationResult& result : check_expectations(wrong, runs)) CHECK_FALSE(result.ok);
  }
}

TEST_CASE("the small scenario is right, so that each change below is what breaks it") {
  CHECK(complaint(std::string(kSmall)) == "no error");
}

TEST_CASE("the example of docs/scenarios.md holds as it is printed") {
  const std::string page = text_of_file(std::string(HBMSCOPE_SOURCE_DIR) + "/docs/scenarios.md");
  const std::string fence = "```json\n";
  const auto begin = page.find(fence);
  REQUIRE(begin != std::string::npos);
  const auto end = page.find("```", begin + fence.size());
  const Scenario scenario =
      parse_scenario(page.substr(begin + fence.size(), end - begin - fence.size()), "docs/scenarios.md");
  for (const ExpectationResult& result : check_expectations(scenario, run_all(scenario))) CHECK(result.ok);
}

TEST_CASE("an unknown key is refused at every level, with the nearest one") {
  check_complaint("\"title\"", "\"titel\"", "/titel: is not a known key", "did you mean \"title\"?");
  check_complaint("\"engine\"", "\"engin\"", "/runs/0/engin: is not a known key", "\"engine\"");
  check_complaint("\"head_dim\"", "\"head_dm\"", "/runs/0/shape/head_dm: is not a known key", "\"head_dim\"");
  check_complaint("{\"kind\"", "{\"kinds\"", "/runs/0/shape/mask/kinds: is not a known key", "\"kind\"");
  check_complaint("\"because\"", "\"becuase\"", "/expect/0/becuase: is not a known key", "\"because\"");
  check_complaint("\"engine\"", "\"plan\": {\"blockq\": 1}, \"engine\"", "/runs/0/plan/blockq: is not a key of a plan",
                  "\"block_q\"");
  check_complaint("\"equals\"", "\"over\": {\"path\": \"a\", \"runs\": \"one\"}, \"equals\"",
                  "/expect/0/over/runs: is not a known key", "\"run\"");
}

TEST_CASE("what a scenario cannot do without is asked for") {
  check_complaint("\"source\": \"S\",", "", "/source: is missing");
  check_complaint("\"Q?\"", "\"\"", "/question: must not be empty");
  check_complaint("\"gpu\": \"H100 SXM\",", "", "/runs/0/gpu: is missing");
  check_complaint(", \"because\": \"4 + 5 keys.\"", "", "/expect/0/because: is missing");
  check_complaint("{\"path\": \"shape.live_pairs\", \"equals\": 9, \"because\": \"4 + 5 keys.\"}", "",
                  "/expect: needs at least one element");
}

TEST_CASE("an impossible run is refused with the file and the key") {
  check_complaint("\"num_kv_heads\": 1", "\"num_kv_heads\": 2", "/runs/0/shape/num_kv_heads: must divide");
  check_complaint("\"seqlen_q\": 2", "\"seqlen_q\": 0", "/runs/0/shape/seqlen_q: must be at least 1");
  check_complaint("\"H100 SXM\"", "\"H1000\"", "/runs/0/gpu: there is no GPU", "H100");
  check_complaint("\"naive\"", "\"naiv\"", "/runs/0/algorithms: ", "naive");
  check_complaint("\"naive\"", "\"naive_bwd\"", "/runs/0/algorithms: naive_bwd is a backward pass");
  check_complaint("\"model\"", "\"gpu\"", "/runs/0/engine: does not know \"gpu\"");
  check_complaint("\"engine\"", "\"pass\": \"forwards\", \"engine\"", "/runs/0/pass: does not know \"forwards\"",
                  "\"forward\"");
  check_complaint("\"engine\"", "\"l2_bytes\": -1, \"engine\"", "/runs/0/l2_bytes: must be at least 0");
  check_complaint("\"engine\"", "\"l2_state\": \"warm\", \"engine\"",
                  "/runs/0/l2_state: has no effect with engine model", "sim");
  check_complaint("\"engine\"", "\"sram_bytes\": 1, \"engine\"", "/runs/0: --sram: 1 B do not hold one element");
  check_complaint("\"engine\"", "\"attention_share\": 0.5, \"attention_speedup\": 1e300, \"engine\"",
                  "/runs/0/attention_speedup: must be between 1e-6 and 1e6");
  check_complaint("\"engine\"", "\"attention_speedup\": 2, \"engine\"", "/runs/0/attention_share: is missing");
  check_complaint("\"engine\"", "\"attention_share\": 1.5, \"engine\"",
                  "/runs/0/attention_share: must be between 0 and 1");
}

TEST_CASE("an expectation says one thing, of a run and a path that exist") {
  check_complaint("\"equals\": 9", "\"equals\": 9, \"at_least\": 8", "/expect/0/path: more than one thing");
  check_complaint("\"equals\": 9, ", "", "/expect/0/path: nothing is expected of it");
  check_complaint("\"equals\": 9", "\"near\": 9", "/expect/0/within: is missing");
  check_complaint("\"equals\": 9", "\"equals\": 9, \"within\": 0.1", "/expect/0/within: goes with near only");
  check_complaint("\"equals\": 9", "\"at_most\": \"9\"", "/expect/0/at_most: must be a number");
  check_complaint("\"path\"", "\"run\": \"two\", \"path\"", "/expect/0/run: does not know \"two\"", "one");
  check_complaint("shape.live_pairs", "shape.livepairs", "/expect/0/path: shape.livepairs: shape has no key",
                  "did you mean \"live_pairs\"?");
  check_complaint("\"equals\": 9", "\"over\": {\"path\": \"shape.bach\"}, \"equals\": 9",
                  "/expect/0/over/path: shape.bach: shape has no key");
}

TEST_CASE("two runs of one name cannot be told apart") {
  std::string text(kSmall);
  const auto begin = text.find("[{\"name\": \"one\"") + 1, end = text.find("],\n \"expect\"");
  text.insert(end, ", " + text.substr(begin, end - begin));
  CHECK(complaint(text).starts_with("small.json: /runs/1/name: is already the name of another run"));
}

TEST_CASE("each rule compares as it says") {
  const auto holds = [](const std::string& rule) {
    const Scenario scenario = parse_scenario(with("\"equals\": 9", rule), "small.json");
    return check_expectations(scenario, run_all(scenario)).front().ok;
  };
  CHECK(holds("\"equals\": 9"));
  CHECK(holds("\"equals\": 9.0"));
  CHECK_FALSE(holds("\"equals\": \"9\""));
  CHECK(holds("\"near\": 10, \"within\": 0.1"));
  CHECK_FALSE(holds("\"near\": 10, \"within\": 0.09"));
  CHECK(holds("\"at_least\": 9"));
  CHECK_FALSE(holds("\"at_least\": 9.5"));
  CHECK(holds("\"at_most\": 9"));
  CHECK_FALSE(holds("\"at_most\": 8"));
  CHECK(holds("\"over\": {\"path\": \"shape.seqlen_q\"}, \"equals\": 4.5"));
  CHECK_FALSE(holds("\"over\": {\"path\": \"amdahl.limit\"}, \"at_least\": 0"));
}

TEST_CASE("an integer beyond 2^53 is compared digit by digit") {
  Scenario scenario = parse_scenario(kSmall, "small.json");
  const std::vector<nlohmann::ordered_json> runs{{{"shape", {{"live_pairs", 9007199254740993}}}}};
  scenario.expect[0].wanted = 9007199254740993;
  CHECK(check_expectations(scenario, runs)[0].ok);
  scenario.expect[0].wanted = 9007199254740992;
  CHECK_FALSE(check_expectations(scenario, runs)[0].ok);
}

TEST_CASE("check exits with 5 and names file, path, expected and got") {
  const TemporaryFolder folder;
  const std::string wrong = folder.write("wrong.json", with("\"equals\": 9", "\"equals\": 3"));
  const Outcome outcome = hbmscope_says("check causal-8k " + wrong);
  CHECK(outcome.code == 5);
  CHECK(outcome.out.find("ok      causal-8k") != std::string::npos);
  CHECK(outcome.out.find(wrong + ": shape.live_pairs: expected 3, got 9") != std::string::npos);
}

TEST_CASE("an unknown scenario exits with 2, a bad file with 3") {
  const Outcome unknown = hbmscope_says("show lesson-8kk");
  CHECK(unknown.code == 2);
  CHECK(unknown.out.find("did you mean \"lesson-8k\"") != std::string::npos);
  const TemporaryFolder folder;
  const std::string bad = folder.write("bad.json", "{");
  CHECK(hbmscope_says("run " + bad).code == 3);
  CHECK(hbmscope_says("check no_such_file.json").code == 3);
}

TEST_CASE("run shows every expectation with its value, and the answer") {
  const TemporaryFolder folder;
  const std::string wrong = folder.write("wrong.json", with("\"equals\": 9", "\"equals\": 3"));
  const Outcome outcome = hbmscope_says("run " + wrong);
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("MISSED      shape.live_pairs = 9 (expected 3). 4 + 5 keys.") != std::string::npos);
  CHECK(outcome.out.find("\nA.\n") != std::string::npos);
  const auto json = nlohmann::json::parse(hbmscope_says("run " + wrong + " --json -").out);
  CHECK(json["runs"][0]["shape"]["live_pairs"] == 9);
  CHECK(json["expect"][0]["value"] == 9);
  CHECK(json["expect"][0]["ok"] == false);
}
