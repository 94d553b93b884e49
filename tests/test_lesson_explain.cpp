// explain: a core with the reader's shape in it, and Markdown on a terminal.
#include "core/error.hpp"
#include "lesson/embedded_lessons.hpp"
#include "lesson/explain.hpp"
#include "lesson/terminal.hpp"
#include "lesson_checks.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;
using lesson::ShapeOption;

namespace {

const std::string kText =
    "# Scores\n\n<!-- let\n  shape = \"--seqlen 8k --causal\"\n  r = $ hbmscope run @shape\n  N = r.shape.seqlen_q\n"
    "  other = file nowhere.json\n-->\nBefore <!--= N as 0 -->1<!--/-->.\n<!-- core scores -->\n"
    "N is <!--= N as 0,000 -->1<!--/--> and <!--= r.total_bytes as auto -->1 kB<!--/-->, `<!--= N as 0 -->`. <!-- a "
    "remark -->\n"
    "<!-- let unused = 1 -->\n\n```console\n$ hbmscope softmax --seqlen 8k --causal\nold\n```\n<!-- /core "
    "-->\nAfter.\n";

FakeRunner runner_with(const std::string& shape, int seqlen) {
  FakeRunner runner;
  runner.says["run " + shape + " --json -"] = {
      0, "{\"shape\": {\"seqlen_q\": " + std::to_string(seqlen) + "}, \"total_bytes\": 2000000}", "", ""};
  runner.says["softmax " + shape] = {0, "out\n", "", ""};
  return runner;
}

std::string core(const std::string& text, FakeRunner& runner, const std::vector<ShapeOption>& options) {
  const EmbeddedFile file{"01-scores", text};
  const std::vector<lesson::Topic> topics = lesson::topics_of({&file, 1});
  REQUIRE(topics.size() == 1);
  CHECK(topics[0].name == "scores");
  CHECK(topics[0].title == "Scores");
  lesson::Results results(runner);
  return lesson::core_for(topics[0], options, results);
}

}  // namespace

TEST_CASE("a core is computed for the reader's shape, without comments, and only with what it needs") {
  FakeRunner as_written = runner_with("--seqlen 8k --causal", 8192);
  CHECK(core(kText, as_written, {}) ==
        "\nN is 8,192 and 2.00\xC2\xA0MB, `<!--= N as 0 -->`. \n\n```console\n$ hbmscope softmax --seqlen 8k "
        "--causal\nout\n```\n");
  FakeRunner own = runner_with("--causal --seqlen 32k", 32768);
  CHECK(core(kText, own, {{"--seqlen", {"32k"}}}) ==
        "\nN is 32,768 and 2.00\xC2\xA0MB, `<!--= N as 0 -->`. \n\n```console\n$ hbmscope softmax --causal --seqlen "
        "32k\nout\n```\n");
}

TEST_CASE("a shape that cannot be is an error, as is one for a core that has none") {
  FakeRunner runner;
  CHECK_THROWS_AS(core(kText, runner, {{"--seqlen", {"0"}}}), Error);
  const std::string without = "# Scores\n<!-- core scores -->\nx <!--= 2 as 0 --><!--/-->\n<!-- /core -->\n";
  CHECK(core(without, runner, {}) == "\nx 2\n");
  CHECK_THROWS_WITH_AS(core(without, runner, {{"--seqlen", {"4k"}}}),
                       "explain scores: this text has no shape to fill in", Error);
}

TEST_CASE("what a core cannot be computed with is named, not the lesson's line") {
  const auto said = [](FakeRunner& runner, const std::vector<ShapeOption>& options) {
    try {
      return core(kText, runner, options);
    } catch (const Error& error) {
      CHECK(error.kind() == (options.empty() ? ErrorKind::data : ErrorKind::usage));
      return std::string(error.what()) + " / " + error.hint();
    }
  };
  FakeRunner one = runner_with("--causal --heads 2", 8192);
  const std::string both = "--causal --heads 2 --dtype fp32";
  one.says["run --seqlen 8k --causal --heads 2 --json -"] =
      runner_with("--seqlen 8k --causal", 8192).says["run --seqlen 8k --causal --json -"];
  one.says["softmax --seqlen 8k --causal --heads 2"] = {0, "out\n", "", ""};
  one.says["run --seqlen 8k " + both + " --json -"] = {
      0, R"({"shape": {"seqlen_q": 1}, "total_bytes": null, "reason": "no peak"})", "", ""};
  CHECK(said(one, {{"--heads", {"2"}}, {"--dtype", {"fp32"}}}) ==
        "explain scores: it cannot be computed with --dtype fp32: no peak / leave --dtype out");
  FakeRunner none;
  CHECK(
      said(none, {{"--pass", {"backward"}}, {"--heads", {"2"}}}) ==
      "explain scores: it cannot be computed with --pass backward --heads 2: no such thing / leave --pass and --heads "
      "out");
  FakeRunner pass = runner_with("--seqlen 8k --causal", 8192);
  CHECK(said(pass, {{"--pass", {"backward"}}}) ==
        "explain scores: this topic is about the forward pass / leave --pass out");
  FakeRunner without;
  CHECK(said(without, {}).find("no such thing") != std::string::npos);
}

TEST_CASE("a shape that takes too long is told with one that does not") {
  FakeRunner runner;
  runner.says["run --causal --seqlen 1M --json -"] = {0, "", "", "took longer than 60 s"};
  CHECK_THROWS_WITH_AS(core(kText, runner, {{"--seqlen", {"1M"}}}),
                       "explain scores: this shape takes too long to compute", lesson::CommandStopped);
  CHECK(runner.asked.size() == 1);
}

TEST_CASE("a pattern that is too coarse for a reader's value gives way") {
  FakeRunner runner;
  const std::string coarse = "# Scores\n<!-- core scores -->\nx <!--= 8 kB as 0 MB --><!--/-->\n<!-- /core -->\n";
  CHECK(core(coarse, runner, {}) == "\nx 8.00\xC2\xA0kB\n");
}

TEST_CASE("the reader's options take the place of the lesson's, and of those that follow them") {
  const auto with = [](std::vector<ShapeOption> options) {
    return lesson::shape_with("--seqlen-q 1 --seqlen 8k --heads 32 --kv-heads 8 --gpu 'H100 SXM' --causal", options);
  };
  CHECK(with({}) == "--seqlen-q 1 --seqlen 8k --heads 32 --kv-heads 8 --gpu 'H100 SXM' --causal");
  CHECK(with({{"--seqlen", {"4k"}}}) == "--heads 32 --kv-heads 8 --gpu 'H100 SXM' --causal --seqlen 4k");
  CHECK(with({{"--heads", {"4"}}, {"--kv-heads", {"2"}}}) ==
        "--seqlen-q 1 --seqlen 8k --gpu 'H100 SXM' --causal --heads 4 --kv-heads 2");
  CHECK(with({{"--gpu", {"RTX 4090"}}, {"--window", {"64,0"}}}) ==
        "--seqlen-q 1 --seqlen 8k --heads 32 --kv-heads 8 --gpu 'RTX 4090' --window 64,0");
  CHECK(lesson::shape_with("--seqlen=8k", std::vector<ShapeOption>{}) == "--seqlen 8k");
}

TEST_CASE("topics of the lessons that are built in have names of their own") {
  const std::vector<lesson::Topic> topics = lesson::topics_of(embedded_lessons());
  CHECK(!topics.empty());
  for (std::size_t i = 0; i < topics.size(); ++i) {
    CHECK(!topics[i].title.empty());
    for (std::size_t j = 0; j < i; ++j) CHECK(topics[i].name != topics[j].name);
  }
}

// ---- on a terminal --------------------------------------------------------------------------------------------------

TEST_CASE("paragraphs are wrapped, code and links are plain, bold is for terminals") {
  const std::string text =
      "# A *title*\n\nOne `code  x` and **strong words** of [a link](x.md), N * N,\nflash_v1 \\*.\n";
  CHECK(lesson::to_terminal(text, 30, false) ==
        "A title\n\nOne code x and strong words of\na link, N * N, flash_v1 *.\n");
  CHECK(lesson::to_terminal("a **b c** d\n", 80, true) ==
        "a \x1b[1m"
        "b c\x1b[0m d\n");
  CHECK(lesson::to_terminal("# T\n", 80, true) == "\x1b[1mT\x1b[0m\n");
  CHECK(lesson::to_terminal("at 2\xC2\xA0MB\n", 5, false) == "at\n2 MB\n");
  CHECK(lesson::to_terminal("a\x1b[31mb\n", 80, true) == "a[31mb\n");
}

TEST_CASE("lists and quotes hang, code keeps its lines") {
  CHECK(lesson::to_terminal("- one two\n  three\n- four\n", 10, false) == "- one two\n  three\n- four\n");
  CHECK(lesson::to_terminal("12. one two three\n", 12, false) == "12. one two\n    three\n");
  CHECK(lesson::to_terminal("> one two\n> three\n", 10, false) == "> one two\n> three\n");
  CHECK(lesson::to_terminal("```sh\na  `b` **c**\n\n# d\n```\n", 8, false) == "  a  `b` **c**\n\n  # d\n");
}

TEST_CASE("tables are aligned, and their last column is wrapped where the line ends") {
  CHECK(lesson::to_terminal("| a | number |\n|---|---:|\n| x\\|y | 1 |\n| `long` name | 22 |\n", 80, false) ==
        "  a          number\n  x|y             1\n  long name      22\n");
  CHECK(lesson::to_terminal("| a | words |\n|---|---|\n| x | one two three four five |\n", 22, false) ==
        "  a  words\n  x  one two three\n     four five\n");
}
