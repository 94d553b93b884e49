// lesson and explain from outside.
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command_runner.hpp"
#include "cli_checks.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

namespace {

const std::string kLesson =
    "# A lesson\n\n<!-- let r = $ hbmscope run --engine model -->\nS takes <!--= "
    "r.algorithms[name=naive].memory.ledger[tensor=S].bytes as 0 MiB -->1 MiB<!--/-->.\n\n"
    "```console head=1\n$ hbmscope gpu show h200\n```\n";

double seconds_of(const Call& call, Outcome& outcome) {
  const auto begin = std::chrono::steady_clock::now();
  outcome = run_program(call);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("check tells what differs and changes nothing, build writes it, and then check is content") {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.md", kLesson);
  const Outcome checked = run_program({"lesson", "check", file});
  CHECK(checked.code == 5);
  CHECK(has(
      checked.out,
      file + ":4: written \"1 MiB\", computed \"128 MiB\" (r.algorithms[name=naive].memory.ledger[tensor=S].bytes)\n"));
  CHECK(has(checked.out, file + ":8: written \"(no line)\", computed "));
  check_complaint(checked, 5, "2 differences in 1 file, 1 value, 1 block", "hbmscope lesson build " + file);
  CHECK(text_of_file(file) == kLesson);

  const Outcome built = run_program({"lesson", "build", file});
  CHECK(built.code == 0);
  CHECK(built.out == file + ": 2 written\n1 file, 1 value, 1 block: 1 changed\n");
  const Outcome again = run_program({"lesson", "build", folder.file("")});
  CHECK(again.out == "1 file, 1 value, 1 block: 0 changed\n");
  const Outcome current = run_program({"lesson", "check", file});
  CHECK(current.code == 0);
  CHECK(current.err.empty());
  // The 0 of "0 MiB", head=1 and h200.
  CHECK(current.out == "1 file, 1 value, 1 block: all current; 3 other numbers are not checked without --numbers\n");
}

TEST_CASE("a file with an error stays as it was, the others are built, and the code is 3") {
  const TemporaryFolder folder;
  const std::string wrong = kLesson + "x <!--= nothing as 0 -->1<!--/-->\n";
  const std::string bad = folder.write("a.md", wrong), good = folder.write("b.md", kLesson);
  std::filesystem::create_directory(folder.file("sub"));
  const std::string below = folder.write("sub/c.md", kLesson);
  (void)folder.write("sub/d.txt", "<!--= nothing as 0 -->");
  const Outcome built = run_program({"lesson", "build", folder.file("")});
  check_complaint(built, 3, "1 error");
  CHECK(has(built.out, bad + ":9: error: there is no name \"nothing\" above this line\n  hint: "));
  CHECK(text_of_file(bad) == wrong);
  for (const std::string& file : {good, below}) CHECK(has(text_of_file(file), "128 MiB"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.file("")), {}) == 3);
  const Outcome checked = run_program({"lesson", "check", bad});
  check_complaint(checked, 3, "1 error and 2 differences");
}

TEST_CASE("the summary counts what nobody checks, and the hint of differences says what build does") {
  const TemporaryFolder folder;
  const std::string list = folder.file("numbers.txt");
  const std::string file =
      folder.write("a.md", "One 1 and 22.\n\n```console\n$ ls\n```\nx <!--= 2 as 0 -->2<!--/-->\n");
  // 1 and 22, and the 2 and the 0 of the value's comment.
  CHECK(run_program({"lesson", "check", file}).out ==
        "1 file, 1 value, 0 blocks, 1 console block of other programs left alone: all current; 4 other numbers are not "
        "checked without --numbers\n");
  CHECK(has(run_program({"lesson", "build", "--numbers", list, file}).out, "\nnumbers: 4 recorded, all new\n"));
  CHECK(!has(run_program({"lesson", "check", "--numbers", list, file}).out, "not checked"));
  (void)folder.write("a.md", "One 1 and 23.\n\nx <!--= 2 as 0 -->2<!--/-->\n");
  check_complaint(run_program({"lesson", "check", "--numbers", list, file}), 5, "1 difference",
                  " records the numbers as they are written, if they are right");
  (void)folder.write("a.md", "One 1 and 23.\n\nx <!--= 2 as 0 -->3<!--/-->\n");
  check_complaint(run_program({"lesson", "check", "--numbers", list, file}), 5, "2 differences",
                  " writes what is computed and records the other numbers as they are written");
  CHECK(has(run_program({"lesson", "build", "--numbers", list, file}).out, "\nnumbers: 4 recorded, 1 changed\n"));
  CHECK(has(run_program({"lesson", "build", "--numbers", list, file}).out, "\nnumbers: 4 recorded, 0 changed\n"));
}

TEST_CASE("paths that are not there, and files that cannot be read") {
  const TemporaryFolder folder;
  check_complaint(run_program({"lesson", "check", folder.file("none.md")}), 3, "none.md: cannot be read", "Markdown");
  check_complaint(run_program({"lesson", "check"}), 2, "PATH");
  check_complaint(run_program({"lesson"}), 2, "needs a command");
  check_complaint(run_program({"lesson", "chekc", "."}), 2, "there is no command \"chekc\"", "check");
  const std::string file = folder.write("a.md", "7\n");
  check_complaint(run_program({"lesson", "check", "--numbers", folder.file("none.txt"), file}), 3, "none.txt");
}

TEST_CASE("--json - gives the findings to programs") {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("a.md", kLesson + "x <!--= 1 as 0 MB -->1<!--/-->\n\xFF<!--= 2 as 0 -->\xFF<!--/-->\n");
  const Outcome checked = run_program({"lesson", "check", file, "--json", "-"});
  CHECK(checked.code == 3);
  const auto findings = nlohmann::json::parse(checked.out);
  CHECK(findings["values"] == 3);
  CHECK(findings["blocks"] == 1);
  REQUIRE(findings["files"].size() == 1);
  CHECK(findings["files"][0]["file"] == file);
  CHECK(findings["files"][0]["differences"].size() == 3);
  CHECK(findings["files"][0]["differences"][0]["line"] == 4);
  CHECK(findings["files"][0]["differences"][0]["computed"] == "128 MiB");
  REQUIRE(findings["files"][0]["errors"].size() == 1);
  CHECK(findings["files"][0]["errors"][0]["line"] == 9);
}

TEST_CASE("commands and files are looked for beside the lesson, whatever the folder of the call") {
  const TemporaryFolder folder;
  (void)folder.write("data.json", R"({"total_bytes": 3000000})");
  (void)folder.write("rows.jsonl", "{\"n\": 1, \"x_s\": 0.5}\n\n{\"n\": 2, \"x_s\": 1.5}\n");
  const std::string file = folder.write(
      "a.md",
      "<!-- let\n  d = file data.json\n  rows = file rows.jsonl\n  g = $ hbmscope gpu show my.json\n-->\nx <!--= "
      "d.total_bytes as 0 MB -->3 MB<!--/--> <!--= rows[n=2].x_s as 0.0 s -->1.5 s<!--/--> "
      "<!--= g.name as text -->H200<!--/-->\n");
  (void)folder.write("my.json", run_program({"gpu", "show", "h200", "--json", "-"}).out);
  const Outcome checked = run_program({"lesson", "check", file});
  CAPTURE(checked.out);
  CHECK(checked.code == 0);
}

TEST_CASE("the list of numbers finds a changed digit with its line, and does not mind other words") {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.md", "One 1.\n\nThe H200 has 4.8 TB/s.\n"),
                    list = folder.file("numbers.txt");
  CHECK(run_program({"lesson", "build", "--numbers", list, file}).code == 0);
  const std::string written = text_of_file(list);
  CHECK(has(written, "\na.md\n  1"));
  CHECK(run_program({"lesson", "check", "--numbers", list, file}).code == 0);
  (void)folder.write("a.md", "Only 1.\n\nAnd\nan H200 moves 4.8 TB/s.\n");
  CHECK(run_program({"lesson", "check", "--numbers", list, file}).code == 0);
  (void)folder.write("a.md", "One 1.\n\nThe H200 has 4.9 TB/s.\n");
  const Outcome checked = run_program({"lesson", "check", "--numbers", list, file});
  CHECK(checked.code == 5);
  CHECK(has(checked.out, file + ":3: written \"4.9\", recorded \"4.8\" (the list of numbers)\n"));
  // A file that the list does not know; one that is gone leaves it.
  const std::string other = folder.write("b.md", "2\n");
  CHECK(run_program({"lesson", "check", "--numbers", list, other}).code == 5);
  std::filesystem::remove(file);
  CHECK(run_program({"lesson", "build", "--numbers", list, other}).code == 0);
  CHECK(!has(text_of_file(list), "a.md"));
}

TEST_CASE("2,000 lines with 500 values are checked within a second") {
  const TemporaryFolder folder;
  std::string text = "<!-- let N = 8k -->\n<!-- let r = $ hbmscope run --engine model -->\n";
  for (int i = 0; i < 500; ++i) {
    const std::string number = std::to_string(i);
    text += "Some text about `code` and " + number + " things, [a link](x.md), **strong**.\n| a | `b` |\n\nValue " +
            number + ": <!--= N * " + number + " + r.shape.seqlen_q as 0 -->" + std::to_string(8192 * i + 8192) +
            "<!--/-->.\n";
  }
  Call checking;
  checking.arguments = {"lesson", "check", folder.write("a.md", text)};
  Outcome outcome;
  const double seconds = seconds_of(checking, outcome);
  CHECK(outcome.out.starts_with("1 file, 500 values, 0 blocks: all current; "));
  CHECK(seconds < 1.0);
}

TEST_CASE("time does not grow with the square of a text, whatever it repeats") {
  const TemporaryFolder folder;
  for (const std::string part : {"`a ", "<!-- ", "<!-- let ", "<!--= 1 as 0 -->1", "<!--= ", "<!-- let a <!-- -->",
                                 "[a](", "> - ", "```\n", "<!-- x -->\n", "$ \\\n", "<!--/-->", "a 1 ", "\\", "| ` "}) {
    CAPTURE(part);
    std::string text;
    while (text.size() < 400'000) text += part;
    Call checking;
    checking.arguments = {"lesson", "check", folder.write("a.md", text)};
    checking.out_path = "/dev/null";
    Outcome outcome;
    CHECK(seconds_of(checking, outcome) < 10);
  }
}

TEST_CASE("a command that takes too long or prints too much is ended and told") {
  const auto run = [](std::vector<std::string> words, RunnerLimits limits) {
    const lesson::Command command{std::move(words), "/"};
    return program_runner(HBMSCOPE_BINARY, limits)->run({&command, 1}).at(0);
  };
  RunnerLimits short_time, little;
  short_time.time = std::chrono::seconds(0);
  little.output_bytes = 1000;
  CHECK(has(run({"run"}, short_time).failure, "longer than 0 s"));
  CHECK(has(run({"run", "--engine", "model"}, little).failure, "printed more than"));
  const lesson::CommandOutcome fine = run({"gpu", "show", "nothing"}, {});
  CHECK(fine.failure.empty());
  CHECK(fine.exit_code == 2);
  CHECK(has(fine.err, "nothing"));
}

TEST_CASE("explain lists its topics, fills in a shape, and knows what comes near a name") {
  const Outcome list = run_program({"explain"});
  CHECK(list.code == 0);
  CHECK(has(list.out, "scores"));
  check_complaint(run_program({"explain", "score"}), 2, "there is no topic \"score\"", "scores");
  check_complaint(run_program({"explain", "scores", "--seqlen", "0"}), 2, "--seqlen");
  check_complaint(run_program({"explain", "scores", "--block-q", "64"}), 2, "--block-q");

  const Outcome own = run_program({"explain", "scores"});
  CHECK(own.code == 0);
  CHECK(own.err.empty());
  // 8,192 x 8,192 scores of 2 B.
  CHECK(has(own.out, "67,108,864"));
  CHECK(has(own.out, "128 MiB"));
  // 32,768 x 32,768 x 2 B a head.
  const Outcome other = run_program({"explain", "scores", "--seqlen", "32k", "--dtype", "bf16"});
  CHECK(has(other.out, "1,073,741,824"));
  CHECK(has(other.out, "2 GiB"));
  for (const std::string& outcome : {own.out, other.out}) {
    CHECK(!has(outcome, "<!--"));
    CHECK(!has(outcome, "\x1b"));
    for (const std::string& line : lines_of(outcome)) {
      CAPTURE(line);
      CHECK(line.size() <= 100);
    }
  }
}

TEST_CASE("an option that a topic cannot be computed with is told in one sentence") {
  check_complaint(run_program({"explain", "scores", "--pass", "backward"}), 2,
                  "explain scores: this topic is about the forward pass", "leave --pass out");
  check_complaint(run_program({"explain", "roofline", "--dtype", "fp8", "--gpu", "t4"}), 2,
                  "explain roofline: it cannot be computed with --dtype fp8 --gpu t4: this GPU has no matmul rate",
                  "leave --dtype or --gpu out");
  for (const char* topic : {"scores", "tiles", "blocks", "versions", "decode"}) {
    const Outcome outcome = run_program({"explain", topic, "--pass", "backward"});
    CAPTURE(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(!has(outcome.err, "algorithms["));
    CHECK(!has(outcome.err, " is null"));
  }
}

TEST_CASE("explain knows a topic by its lesson's name, and lessons of the reader's own") {
  const Outcome by_topic = run_program({"explain", "scores"});
  for (const char* name : {"01-size-of-s", "docs/lessons/01-size-of-s.md"})
    CHECK(run_program({"explain", name}).out == by_topic.out);
  const TemporaryFolder folder;
  (void)folder.write("data.json", R"({"n": 7})");
  const std::string file = folder.write(
      "mine.md",
      "# Mine\n<!-- let\n  shape = \"--seqlen 4k\"\n  r = $ hbmscope run @shape --engine model\n  d = file "
      "data.json\n-->\n<!-- core one -->\nN <!--= r.shape.seqlen_q as 0,000 -->?<!--/-->, n <!--= d.n as 0 "
      "-->?<!--/-->.\n<!-- /core -->\n");
  CHECK(run_program({"explain", "one", "--lesson", file}).out == "Mine\n\nN 4,096, n 7.\n");
  CHECK(run_program({"explain", "--lesson", file, "--seqlen", "32k"}).out == "Mine\n\nN 32,768, n 7.\n");
  check_complaint(run_program({"explain", "scores", "--lesson", file}), 2, "there is no topic \"scores\"", "one");
  check_complaint(run_program({"explain", "--lesson", folder.file("none.md")}), 3, "none.md");
  check_complaint(run_program({"explain", "--lesson", folder.write("b.md", "x\n")}), 3, "has no core", "core TOPIC");
  check_complaint(run_program({"explain", "--lesson", folder.write("c.md", "x\n\n<!-- core a -->\n")}), 3,
                  "c.md:3: the core \"a\" has no end");
  check_complaint(run_program({"explain", "--seqlen", "8k"}), 2, "a shape without a topic");
}

TEST_CASE("lesson list shows titles and topics, of what is built in or of a folder") {
  const Outcome built_in = run_program({"lesson", "list"});
  CHECK(built_in.code == 0);
  CHECK(has(built_in.out, "01-size-of-s"));
  CHECK(has(built_in.out, "scores"));
  const TemporaryFolder folder;
  (void)folder.write("a.md", "# Mine\n<!-- core one -->\nx\n<!-- /core -->\n");
  const Outcome mine = run_program({"lesson", "list", folder.file("")});
  CHECK(has(mine.out, "Mine"));
  CHECK(has(mine.out, "one"));
}
