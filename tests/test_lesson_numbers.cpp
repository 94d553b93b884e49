// Numbers that nobody computes: the list of them, and that no digit of the documents changes unseen.
#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "cli/command_runner.hpp"
#include "core/error.hpp"
#include "lesson/numbers.hpp"
#include "lesson_checks.hpp"
#include "scenario/json_reader.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;
using lesson::NumberWord;

namespace fs = std::filesystem;

namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  for (const NumberWord& word : lesson::numbers_of(text, check_text(text).computed)) all.push_back(word.text);
  return all;
}

std::vector<NumberWord> numbers(std::initializer_list<const char*> texts) {
  std::vector<NumberWord> all;
  for (const char* text : texts) all.push_back({all.size() + 1, text, {}});
  return all;
}

}  // namespace

TEST_CASE("a number is a word with a digit in it, wherever it stands") {
  CHECK(words("An H200 has 4.8 TB/s (2^32, 545,259,520 B), see [a](b12.md), `x = 5`, arXiv 2205.14135, flash_v1.\n") ==
        std::vector<std::string>{"H200", "4.8", "2", "32", "545,259,520", "b12", "5", "2205.14135", "flash_v1"});
  CHECK(words("```sh\nrun --seqlen 8k\n```\n| 1 | -2 |\n\xC3\xA9"
              "3\xC3\xA9 4") == std::vector<std::string>{"8k", "1", "2", "3", "4"});
}

TEST_CASE("what is computed is no number of the list, what computes it is") {
  CHECK(words("<!-- let a = 7 -->\nx <!--= a * 3 as 0.0 -->21.0<!--/--> 9\n```console head=2\n$ hbmscope run --seqlen "
              "4k\nfour 5\n```\n") == std::vector<std::string>{"7", "3", "0.0", "9", "2", "4k"});
}

TEST_CASE("the list is read as it was written, words around a number being for readers") {
  lesson::NumberList list;
  list["../README.md"] =
      lesson::numbers_of("A kernel of 3 stages moves 941.6 MB through the whole of the machine\n", {});
  list["cli.md"] = {};
  const std::string text = lesson::number_list_text(list);
  CHECK(text.find("  941.6           A kernel of 3 stages moves 941.6 MB through the whole of the") !=
        std::string::npos);
  const lesson::NumberList read = lesson::parse_number_list(text, "numbers.txt");
  REQUIRE(read.size() == 2);
  CHECK(lesson::compare_numbers(list["../README.md"], read.at("../README.md")).empty());
  const std::string heading = text.substr(0, text.find('\n') + 1);
  CHECK_THROWS_AS(lesson::parse_number_list(heading + "  12  x\n", "numbers.txt"), Error);
  CHECK_THROWS_WITH_AS(lesson::parse_number_list("# My lesson\nvery precious 5\n", "lesson.md"),
                       "lesson.md: is no list of numbers", Error);
}

TEST_CASE("a changed, a new and a missing number are told where they are, and nothing else") {
  const auto recorded = numbers({"1", "2", "3", "4", "5", "6"});
  const auto told = [&](std::initializer_list<const char*> written) {
    std::vector<std::string> all;
    for (const lesson::Difference& d : lesson::compare_numbers(numbers(written), recorded))
      all.push_back(std::to_string(d.line) + ":" + d.written + ":" + d.computed);
    return all;
  };
  using Told = std::vector<std::string>;
  CHECK(told({"1", "2", "3", "4", "5", "6"}).empty());
  CHECK(told({"1", "2", "9", "4", "5", "6"}) == Told{"3:9:3"});
  CHECK(told({"1", "2", "3", "4", "5", "9"}) == Told{"6:9:6"});
  CHECK(told({"1", "2", "9", "3", "4", "5", "6"}) == Told{"3:9:(no number)"});
  CHECK(told({"1", "3", "4", "5", "6"}) == Told{"1:(no number):2"});
  CHECK(told({"9", "2", "3", "4", "8", "6"}) == Told{"1:9:1", "5:8:5"});
  CHECK(told({}).size() == 6);
}

// ---- this project's own documents
// -------------------------------------------------------------------------------------

namespace {

/// Runs commands until it is told that there are no others.
class FirstOnly : public lesson::CommandRunner {
 public:
  bool closed = false;
  std::vector<lesson::CommandOutcome> run(std::span<const lesson::Command> commands) override {
    if (!closed) return runner_->run(commands);
    return std::vector<lesson::CommandOutcome>(commands.size(), {1, "", "another command\n", ""});
  }

 private:
  std::unique_ptr<lesson::CommandRunner> runner_ = program_runner(HBMSCOPE_BINARY);
};

std::vector<lesson::Source> documents() {
  const fs::path root = HBMSCOPE_SOURCE_DIR;
  std::set<fs::path> files{root / "README.md"};
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") files.insert(entry.path());
  }
  std::vector<lesson::Source> sources;
  for (const fs::path& file : files)
    sources.push_back({file.string(), file.parent_path().string(), read_text_file(file.string())});
  return sources;
}

/// The lines at which something is found.
std::set<std::size_t> found_lines(const lesson::Source& source, lesson::Results& results,
                                  const lesson::NumberList& list) {
  const lesson::Checked checked = lesson::check({&source, 1}, results).at(0);
  std::set<std::size_t> lines;
  for (const lesson::Problem& p : checked.problems) lines.insert(p.line);
  for (const lesson::Difference& d : checked.differences) lines.insert(d.line);
  const std::string name =
      fs::path(source.file).lexically_relative(fs::path(HBMSCOPE_SOURCE_DIR) / "docs").generic_string();
  const auto recorded = list.find(name);
  REQUIRE(recorded != list.end());
  for (const lesson::Difference& d :
       lesson::compare_numbers(lesson::numbers_of(source.text, checked.computed), recorded->second))
    lines.insert(d.line);
  return lines;
}

}  // namespace

TEST_CASE("a changed digit of a number in the documents is found in its line, of each up to 40 and spread evenly") {
  FirstOnly runner;
  lesson::Results results(runner);
  std::vector<lesson::Source> sources = documents();
  (void)lesson::check(sources, results);
  runner.closed = true;
  const lesson::NumberList list =
      lesson::parse_number_list(read_text_file(std::string(HBMSCOPE_SOURCE_DIR) + "/docs/numbers.txt"), "numbers.txt");
  constexpr std::size_t kOfADocument = 40;  // each change checks its whole document anew
  std::size_t changed = 0;
  for (lesson::Source& source : sources) {
    CAPTURE(source.file);
    REQUIRE(found_lines(source, results, list).empty());
    std::vector<std::pair<std::size_t, std::size_t>> numbers;  // where one begins, and its line
    std::size_t line = 1;
    bool in_number = false;  // numbers are compared whole, so one digit stands for those beside it
    for (std::size_t i = 0; i < source.text.size(); ++i) {
      const char c = source.text[i];
      if (c == '\n') ++line;
      const bool digit = c >= '0' && c <= '9';
      if (digit && !in_number) numbers.emplace_back(i, line);
      in_number = digit;
    }
    const std::size_t step = std::max<std::size_t>(1, numbers.size() / kOfADocument);
    for (std::size_t i = 0; i < numbers.size(); i += step) {
      char& c = source.text[numbers[i].first];
      const char before = c;
      c = before == '9' ? '0' : static_cast<char>(before + 1);
      CAPTURE(numbers[i].second);
      CHECK(found_lines(source, results, list).contains(numbers[i].second));
      c = before;
      ++changed;
    }
  }
  CHECK(changed > 800);
}
