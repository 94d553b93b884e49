// Lessons: what is rewritten, what is refused, and that every other byte stays.
#include "lesson_checks.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;
using lesson::Checked;

namespace {

const std::string kEnd = "<!--/-->";

/// With a word before it, because no value may begin a line.
std::string value(const std::string& directive, const std::string& shown) {
  return "v <!--= " + directive + " -->" + shown + kEnd;
}

const std::string kNames = "<!-- let N = 8192 -->\n<!-- let\n  e = 2 B\n  r = $ hbmscope run\n-->\n";

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

}  // namespace

// ---- values ---------------------------------------------------------------------------------------------------------

TEST_CASE("a value is rewritten in place, and a current one is none of the differences") {
  const std::string text = kNames + "S takes " + value("N * N * e as 0 MB", "1 MB") + ", or " +
                           value("r.total_bytes as 0 MB", "537 MB") + ".\n";
  const Checked checked = check_text(text);
  CHECK(checked.values == 2);
  REQUIRE(checked.differences.size() == 1);
  CHECK(checked.differences[0].line == 6);
  CHECK(lesson::finding_lines(checked) == "docs/a.md:6: written \"1 MB\", computed \"134 MB\" (N * N * e)\n");
  CHECK(build_text(text) == kNames + "S takes " + value("N * N * e as 0 MB", "134 MB") + ", or " +
                                value("r.total_bytes as 0 MB", "537 MB") + ".\n");
}

TEST_CASE("values stand in tables, lists, quotes, headings and empty, several a line") {
  for (const std::string& before : std::vector<std::string>{"| a | ", "- ", "1. ", "> ", "> - ", "# ", "**", "a ",
                                                            "\\` ", "`` ` `` ", "<!-- x --> "}) {
    CAPTURE(before);
    const std::string line = before + value("8k as 0", "") + " | " + value("2 as 0", "3") + " |\n";
    CHECK(build_text(line) == before + value("8k as 0", "8192") + " | " + value("2 as 0", "2") + " |\n");
  }
}

TEST_CASE("a definition knows what stands above it, commands and files are results, texts go into commands") {
  const std::string text =
      "<!-- let shape = \"--seqlen 4k\" -->\n<!-- let\n  r = $ hbmscope run \\\n        @shape\n  N = "
      "r.shape.seqlen_q\n"
      "  twice = 2 * N\n-->\n" +
      value("twice as 0", "8192") + value("r.total_bytes as 0 kB", "1 kB");
  FakeRunner runner;
  const Checked checked = check_text(text, runner);
  CAPTURE(lesson::finding_lines(checked));
  CHECK(checked.problems.empty());
  CHECK(checked.differences.empty());
  CHECK(runner.asked == std::vector<std::string>{"run --seqlen 4k --json -"});
}

TEST_CASE("definitions may stand in a quote, and end where their comment ends") {
  const std::string text = "> <!-- let\n>   a = 1\n>   b = 2 -->\n> " + value("a + b as 0", "3") + "\n";
  const Checked checked = check_text(text);
  CHECK(checked.problems.empty());
  CHECK(checked.values == 1);
  CHECK(checked.differences.empty());
}

TEST_CASE("what is wrong with a value or a definition is told with its line") {
  check_problem("x\n" + value("8k", "1"), 2, "does not say how to write");
  check_problem("x\n\n" + value("M as 0", "1"), 3, "there is no name \"M\"");
  check_problem(kNames + value("r.total_byte as 0 MB", "1"), 6, "r has no key \"total_byte\"");
  check_problem(kNames + value("r.predicted_s as 0 MB", "1"), 6, "in s, and the pattern shows \"MB\"");
  check_problem(kNames + value("N as 0 MB", "1"), 6, "plain number, and the pattern shows \"MB\"");
  check_problem(kNames + value("r.shape[x|y] as 0", "1"), 6, "holds |");
  check_problem(kNames + value("N--1 as 0", "1"), 6, "--");
  check_problem("a\n<!--= 1 as 0 -->1\n", 2, "no end on its line");
  check_problem("a\n<!--= 1 as 0 -->1\n" + kEnd + "\n", 2, "no end on its line");
  check_problem("a\n<!--= 1 as 0\n-->1" + kEnd, 2, "no end on its line");
  check_problem("a\n<!--= 1 as 0 -->1 and " + value("2 as 0", "2"), 2, "no end on its line");
  check_problem("a\nb " + kEnd + " c\n", 2, "never began");
  for (const char* before : {"", "   ", "> ", "- ", "2. > "})
    check_problem(std::string("a\n") + before + "<!--= 1 as 0 -->1" + kEnd + "\n", 2, "begins its line");
  check_problem("a\nb <!--= 1 as 0 -->`?`" + kEnd + "\n", 2, "holds `");
  check_problem("<!-- let\n  a = 1\n  2b = 1\n-->\n", 3, "no definition");
  check_problem("<!-- let a -->\n", 1, "no definition");
  check_problem("<!-- let a = -->\n", 1, "without a value");
  check_problem("<!-- let MB = 1 -->\n", 1, "cannot be a name");
  check_problem("<!-- let\n  a = 1\n  a = 2\n-->\n", 3, "defined in line 2 already");
  check_problem("x\n<!-- let a = 1\n\nnever closed\n", 2, "a comment has no end");
  check_problem("x\n<!-- let a = 1\n" + value("2 as 0", "2"), 2, "a comment has no end");
  check_problem("x\n<!-- a remark that has no end\n", 2, "a comment has no end");
  check_problem("<!-- let\n  a = 1\n  b = a / \n-->\n", 3, "ends too early");
  check_problem("<!-- let N = N -->\n" + value("N as 0", "1"), 1, "there is no name \"N\"");
  check_problem("<!-- let r = r.shape -->\n", 1, "there is no name \"r\"");
  check_problem("<!-- let r = $ hbmscope run @r -->\n", 1, "there is no name \"r\"");
  check_problem("<!-- let\n  a = 1\n  b = max(a, b)\n  c = b\n-->\n" + value("c as 0", "1"), 3,
                "there is no name \"b\"");
  check_problem("<!-- let t = \"abc -->\n", 1, "second \"");
  check_problem("<!-- let f = file nowhere.json -->\n", 1, "nowhere.json");
  check_problem("<!-- let a = 1 -->\n<!-- let r = $ hbmscope run @a -->\n", 2, "is no text");
  check_problem("\n<!-- let r = $ hbmscope run --seqlen 0 -->\n", 2, "ended with code 2");
  check_problem("<!-- core a -->\n<!-- core b -->\n<!-- /core -->\n", 2, "inside the core");
  check_problem("<!-- core a -->\n<!-- /core -->\n<!-- core a -->\n<!-- /core -->\n", 3, "there is a core");
  check_problem("\n<!-- core a -->\n", 2, "has no end");
  check_problem("\n<!-- /core -->\n", 2, "never began");
  check_problem("\n<!-- core Big Topic -->\n", 2, "is no topic");
}

TEST_CASE("a command without its $, and a name that is taken, are told once and for what they are") {
  for (const char* command : {"hbmscope run --seqlen 4k", "./dev run", "./dev hbmscope run"})
    check_problem(std::string("<!-- let r = ") + command + " -->\n" + value("r.total_bytes as auto", "1"), 1,
                  "stands without its $");
  for (const char* taken : {"MB", "s", "max", "KiB"}) {
    const std::string name = taken;
    check_problem("<!-- let " + name + " = 2 -->\n<!-- let x = " + name + " * 2 -->\n" + value(name + " as 0", "1") +
                      value("x as 0", "1"),
                  1, "cannot be a name");
  }
}

TEST_CASE("one wrong definition is one error, whoever uses it, and all else is checked") {
  const std::string text = "<!-- let a = nothing -->\n<!-- let b = a * 2 -->\n" + value("a as 0", "1") +
                           value("b as 0", "1") + "\n" + value("2 as 0", "3") +
                           "\n```console\n$ hbmscope run\nzero\n```\n";
  const Checked checked = check_text(text);
  REQUIRE(checked.problems.size() == 1);
  CHECK(checked.problems[0].line == 1);
  REQUIRE(checked.differences.size() == 2);
  CHECK(checked.differences[0].line == 4);
  CHECK(checked.differences[1].line == 7);
}

// ---- blocks ---------------------------------------------------------------------------------------------------------

TEST_CASE("a console block shows what the command prints") {
  CHECK(build_text("a\n```console\n$ hbmscope run\nold\n```\nb\n") ==
        "a\n```console\n$ hbmscope run\none\ntwo\nthree\n```\nb\n");
  CHECK(build_text("```console\n$ ./dev run\n```\n") == "```console\n$ ./dev run\none\ntwo\nthree\n```\n");
  CHECK(build_text("~~~~ console\n$ ./dev hbmscope run --seqlen \\\n  4k\nx\n~~~~\n") ==
        "~~~~ console\n$ ./dev hbmscope run --seqlen \\\n  4k\nfour\n\nfive\n~~~~\n");
  CHECK(build_text("```console\n$ hbmscope softmax --scores '2,1|3,0' --values \"1\"\n```\n") ==
        "```console\n$ hbmscope softmax --scores '2,1|3,0' --values \"1\"\nsoft\n```\n");
}

TEST_CASE("several commands a block; blank lines between them are the author's") {
  const std::string text = "```console\n$ hbmscope run\n\n$ hbmscope run --seqlen 4k\nx\n\n\n```\n";
  CHECK(build_text(text) ==
        "```console\n$ hbmscope run\none\ntwo\nthree\n\n$ hbmscope run --seqlen 4k\nfour\n\nfive\n\n\n```\n");
}

TEST_CASE("head= cuts the output, exit= expects a code and shows what went to standard error") {
  CHECK(build_text("```console head=2\n$ hbmscope run\n```\n") ==
        "```console head=2\n$ hbmscope run\none\ntwo\n...\n```\n");
  CHECK(build_text("```console head=3\n$ hbmscope run\n```\n") ==
        "```console head=3\n$ hbmscope run\none\ntwo\nthree\n```\n");
  CHECK(build_text("```console exit=2\n$ hbmscope run --seqlen 0\n```\n") ==
        "```console exit=2\n$ hbmscope run --seqlen 0\nhbmscope: --seqlen: must be from 1\n  hint: write 8192\n```\n");
}

TEST_CASE("what stands before a block in a list or a quote stands before each line of its output") {
  CHECK(build_text("> ```console\n> $ hbmscope run --seqlen 4k\n> ```\n") ==
        "> ```console\n> $ hbmscope run --seqlen 4k\n> four\n>\n> five\n> ```\n");
  CHECK(build_text("- a\n\n  ```console\n  $ hbmscope run --seqlen 4k\n  ```\n") ==
        "- a\n\n  ```console\n  $ hbmscope run --seqlen 4k\n  four\n\n  five\n  ```\n");
  CHECK(build_text("1. ```console\n   $ hbmscope run\n   old\n   ```\n") ==
        "1. ```console\n   $ hbmscope run\n   one\n   two\n   three\n   ```\n");
  CHECK(build_text("> - ~~~console\n>   $ hbmscope run\n>   ~~~\n") ==
        "> - ~~~console\n>   $ hbmscope run\n>   one\n>   two\n>   three\n>   ~~~\n");
  CHECK(build_text("\t```console\n\t$ hbmscope run\n\t```\n") ==
        "\t```console\n\t$ hbmscope run\n\tone\n\ttwo\n\tthree\n\t```\n");
}

TEST_CASE("the first line that differs is told") {
  const Checked checked = check_text("```console\n$ hbmscope run\none\nzwei\nthree\n```\n");
  CHECK(lesson::finding_lines(checked) == "docs/a.md:4: written \"zwei\", computed \"two\" ($ hbmscope run)\n");
  CHECK(lesson::finding_lines(check_text("```console\n$ hbmscope run\none\n```\n")) ==
        "docs/a.md:4: written \"(no line)\", computed \"two\" ($ hbmscope run)\n");
  CHECK(lesson::finding_lines(check_text("```console\n$ hbmscope run\none\ntwo\nthree\nfour\n```\n")) ==
        "docs/a.md:6: written \"four\", computed \"(no line)\" ($ hbmscope run)\n");
}

TEST_CASE("a block whose command does not do as expected is told with its line") {
  check_problem("x\n```console\n$ hbmscope run --seqlen 0\n```\n", 3, "ended with code 2, and the block expects 0");
  check_problem("x\n```console exit=2\n$ hbmscope run\n```\n", 3, "ended with code 0, and the block expects 2");
  check_problem("```console\n$ hbmscope run\none\ntwo\nthree\n$ ls -l\n```\n", 6, "hbmscope alone, not \"ls\"");
  check_problem("```console\n$ hbmscope gpu list\n```\n", 2, "took longer than 60 s");
  check_problem("```console\n$ hbmscope gpu show h200\n```\n", 2, "would end the block");
  check_problem("\n```console heed=2\n$ hbmscope run\n```\n", 2, "heed=2");
  check_problem("\n```console head=x\n$ hbmscope run\n```\n", 2, "whole number");
  check_problem("a\n\n```console\n$ hbmscope run\n", 3, "never closed");
  check_problem("a\n````md\n```console\n$ hbmscope run\n```\n", 2, "never closed");
  check_problem("a\n> ```console\n> $ hbmscope run\n\nb\n", 2, "never closed");
}

TEST_CASE("any blanks may stand behind the $, or none") {
  for (const std::string prompt : {"$  ", "$", "$\t"}) {
    CHECK(build_text("```console\n" + prompt + "hbmscope run\n\n" + prompt + "./dev run\nold\n```\n") ==
          "```console\n" + prompt + "hbmscope run\none\ntwo\nthree\n\n" + prompt + "./dev run\none\ntwo\nthree\n```\n");
  }
}

TEST_CASE("a console that was probably meant to be checked is an error, others are counted") {
  const auto problem_of = [](const std::string& lines, std::size_t line, std::string_view part) {
    check_problem("a\n```console\n" + lines + "\n```\n", line, part);
    const Checked checked = check_text("a\n```console\n" + lines + "\n```\n");
    CHECK(checked.other_consoles == 0);
    return checked.problems.at(0).hint;
  };
  for (const char* near :
       {"$ hbmscop run", "$ ./hbmscope run", "$hbmscpoe run", "$ HBMScope run", "$ build/cpu/hbmscope run"})
    CHECK(problem_of(near, 3, "which is not checked") == "did you mean \"$ hbmscope\"?");
  for (const char* near : {"$ dev run", "$ ./dve run", "$ ./dev rnu", "$ ../dev run"})
    CHECK(problem_of(near, 3, "which is not checked") == "did you mean \"$ ./dev run\"?");
  CHECK(problem_of("hbmscope run", 3, "without its $").starts_with("write $ before a command"));
  CHECK(problem_of("./dev hbmscope run", 3, "without its $").starts_with("write $ before a command"));
  for (const char* before : {"$ ls", "", "# as in the paper"})
    CHECK(problem_of(std::string(before) + "\n$ hbmscope run", 4, "begins with other lines") != "");
  for (const char* other :
       {"$ nvidia-smi", "$ ./dev test", "$ ls -l\n$5", "$ df", "some output", "$ git clone x\n$ ./dev"}) {
    CAPTURE(other);
    const Checked checked = check_text("```console\n" + std::string(other) + "\n```\n");
    CAPTURE(lesson::finding_lines(checked));
    CHECK(checked.problems.empty());
    CHECK(checked.other_consoles == 1);
  }
  CHECK(check_text("```console\n\n```\n```sh\n$ ls\n```\n").other_consoles == 0);
}

TEST_CASE("other blocks are nobody's, and directives in code mean nothing") {
  const std::string broken = "<!--= nothing as 0 -->1" + kEnd;
  for (const std::string& text : std::vector<std::string>{
           "```sh\n$ hbmscope run\n" + broken + "\n```\n", "```console\n$ nvidia-smi\nx\n```\n",
           "```console\n$ ./dev test\n```\n", "```\n" + broken + "\n```\n", "`" + broken + "`\n",
           "`` a ` " + broken + " ``\n", "a `b\nb " + broken + "\nc`\n",
           std::string("````md\n```console\n$ hbmscope run\nold\n```\n````\n"), "~~~\n```\n" + broken + "\n~~~\n",
           "\\" + broken.substr(0, 23) + "\n", std::string("```console\n```\n"),
           "<!-- " + std::string("a\n```console\n$ hbmscope run\n```\n-->\n"),
           std::string("```inline` $ hbmscope\n")}) {
    CAPTURE(text);
    const Checked checked = check_text(text);
    CAPTURE(lesson::finding_lines(checked));
    CHECK(checked.values == 0);
    CHECK(checked.blocks == 0);
    CHECK(checked.problems.empty());
    CHECK(lesson::rebuilt(text, checked) == text);
  }
}

TEST_CASE("a code span ends with its paragraph, its cell's row, its heading or its item") {
  const std::string one = value("1 as 0", "2");
  for (const std::string& text :
       std::vector<std::string>{"a ` b\n\n" + one + " `\n", "| ` |\n| " + one + " ` |\n", "# `\n" + one + "`\n",
                                "- `\n- " + one + "`\n", "`\n<!-- x -->" + one + "`\n", "> `\n\n" + one + "`\n"}) {
    CAPTURE(text);
    CHECK(check_text(text).values == 1);
  }
}

// ---- bytes ----------------------------------------------------------------------------------------------------------

TEST_CASE("line ends, a byte order mark, a missing last newline and broken UTF-8 stay") {
  CHECK(build_text("\xEF\xBB\xBF```console\r\n$ hbmscope run\r\nold\r\n```\r\nb") ==
        "\xEF\xBB\xBF```console\r\n$ hbmscope run\r\none\r\ntwo\r\nthree\r\n```\r\nb");
  CHECK(build_text("\xEF\xBB\xBF<!-- let a = 1 -->\r\n\xFF\xFE " + value("a as 0", "\x80") + "\r\nx\ry\n\nz") ==
        "\xEF\xBB\xBF<!-- let a = 1 -->\r\n\xFF\xFE " + value("a as 0", "1") + "\r\nx\ry\n\nz");
  CHECK(build_text("<!-- let\r\n  a = 1\r\n  b = 2\r\n-->\r\n" + value("a + b as 0", "")) ==
        "<!-- let\r\n  a = 1\r\n  b = 2\r\n-->\r\n" + value("a + b as 0", "3"));
}

TEST_CASE("a current block keeps its own line ends and blanks") {
  const std::string text = "> ```console\n> $ hbmscope run --seqlen 4k\r\n>four\n> \n> five\r\n> ```\n";
  CHECK(build_text(text) == text);
}

namespace {

/// Repeatable, and the same on every system.
struct Random {
  std::uint64_t state;
  std::size_t below(std::size_t limit) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>((state >> 33) % limit);
  }
};

/// A text put together from what is special to Markdown and to lessons, and from nonsense.
std::string random_text(Random& random) {
  static const std::vector<std::string> parts{"<!--",
                                              "-->",
                                              "<!--=",
                                              "<!--/-->",
                                              "<!-- let",
                                              " a = 1 ",
                                              "<!-- let b = 2 -->",
                                              "<!--= 1 as 0 -->",
                                              "<!--= b as 0 -->",
                                              " as 0",
                                              "`",
                                              "``",
                                              "```",
                                              "````",
                                              "```console\n",
                                              "```console head=1\n",
                                              "~~~",
                                              "```console\n$ hbmscope run\n",
                                              "\n```\n",
                                              "$ hbmscope run\n",
                                              "$ hbmscope run",
                                              "\\",
                                              "\n",
                                              "\n\n",
                                              "\r\n",
                                              "\r",
                                              " ",
                                              "    ",
                                              "\t",
                                              "> ",
                                              "- ",
                                              "1. ",
                                              "| ",
                                              "# ",
                                              "word",
                                              "8192",
                                              "\xFF",
                                              "\xEF\xBB\xBF",
                                              "\xC3\xA9",
                                              "<!-- core x -->",
                                              "<!-- /core -->",
                                              "one\ntwo\nthree\n",
                                              std::string(1, '\0')};
  std::string text;
  for (std::size_t n = random.below(40); n > 0; --n) text += parts[random.below(parts.size())];
  return text;
}

/// The text without what the check says is the tool's.
std::string without_computed(const std::string& text, const Checked& checked) {
  std::string rest;
  std::size_t at = 0;
  for (const lesson::Range& range : checked.computed) {
    REQUIRE(range.begin >= at);
    rest += text.substr(at, range.begin - at) + "|";
    at = range.end;
  }
  return rest + text.substr(at);
}

}  // namespace

TEST_CASE("whatever the text: only computed bytes change, building again changes nothing, and then all is current") {
  Random random{20240607};
  FakeRunner runner;
  std::size_t with_values = 0, with_blocks = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = random_text(random);
    CAPTURE(text);
    const Checked before = check_text(text, runner);
    const std::string built = lesson::rebuilt(text, before);
    const Checked after = check_text(built, runner);
    REQUIRE(without_computed(text, before) == without_computed(built, after));
    REQUIRE(after.differences.empty());
    REQUIRE(after.problems.size() == before.problems.size());
    REQUIRE(lesson::rebuilt(built, after) == built);
    for (const lesson::Problem& p : before.problems) REQUIRE((p.line >= 1 && p.line <= 1 + count_of(text, "\n")));
    with_values += before.values > 0 ? 1 : 0;
    with_blocks += before.blocks > 0 ? 1 : 0;
  }
  CHECK(with_values > 200);
  CHECK(with_blocks > 100);
}

// ---- many files and many values
// --------------------------------------------------------------------------------------

TEST_CASE("the same command runs once, in its folder only where it may name a file") {
  FakeRunner runner;
  lesson::Results results(runner);
  const std::string block = "```console\n$ hbmscope run\n```\n```console\n$ hbmscope gpu show a.json\n```\n";
  const std::vector<lesson::Source> sources{{"x/a.md", "x", block + block}, {"y/b.md", "y", block}};
  (void)lesson::check(sources, results);
  (void)lesson::check(sources, results);
  REQUIRE(runner.asked.size() == 3);
  CHECK(std::vector<std::string>{runner.folders[0], runner.folders[1], runner.folders[2]} ==
        std::vector<std::string>{"x", "y", ""});
}
