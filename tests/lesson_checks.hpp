#pragma once
#include <doctest/doctest.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lesson/findings.hpp"
#include "lesson/lesson.hpp"

/// Lessons checked without running anything.
namespace hbmscope::testing {

/// Knows what a few commands say, and notes which were asked for.
class FakeRunner : public lesson::CommandRunner {
 public:
  std::vector<lesson::CommandOutcome> run(std::span<const lesson::Command> commands) override {
    std::vector<lesson::CommandOutcome> outcomes;
    for (const lesson::Command& command : commands) {
      std::string words;
      for (const std::string& word : command.words) words += (words.empty() ? "" : " ") + word;
      asked.push_back(words);
      folders.push_back(command.folder);
      const auto known = says.find(words);
      outcomes.push_back(known != says.end() ? known->second
                                             : lesson::CommandOutcome{2, "", "hbmscope: no such thing\n", ""});
    }
    return outcomes;
  }

  std::map<std::string, lesson::CommandOutcome> says{
      {"run", {0, "one\ntwo\nthree\n", "", ""}},
      {"run --seqlen 4k", {0, "four\n\nfive\n", "", ""}},
      {"run --seqlen 0", {2, "", "hbmscope: --seqlen: must be from 1\n  hint: write 8192\n", ""}},
      {"run --json -", {0, R"({"shape": {"seqlen_q": 8192}, "total_bytes": 536870912, "predicted_s": 0.92})", "", ""}},
      {"run --seqlen 4k --json -", {0, R"({"shape": {"seqlen_q": 4096}, "total_bytes": 1000})", "", ""}},
      {"softmax --scores 2,1|3,0 --values 1", {0, "soft\n", "", ""}},
      {"gpu list", {0, "", "", "took longer than 60 s"}},
      {"gpu show h200", {0, "```\n", "", ""}},
  };
  std::vector<std::string> asked, folders;
};

/// The one file "a.md" in the folder "docs".
inline lesson::Checked check_text(std::string_view text, FakeRunner& runner) {
  const lesson::Source source{"docs/a.md", "docs", std::string(text)};
  lesson::Results results(runner);
  return lesson::check({&source, 1}, results).at(0);
}
inline lesson::Checked check_text(std::string_view text) {
  FakeRunner runner;
  return check_text(text, runner);
}

inline std::string build_text(std::string_view text) {
  const lesson::Checked checked = check_text(text);
  CAPTURE(lesson::finding_lines(checked));
  CHECK(checked.problems.empty());
  return lesson::rebuilt(text, checked);
}

/// The one problem of a text stands in this line and says this.
inline void check_problem(std::string_view text, std::size_t line, std::string_view part) {
  const lesson::Checked checked = check_text(text);
  CAPTURE(text);
  CAPTURE(lesson::finding_lines(checked));
  REQUIRE(checked.problems.size() == 1);
  CHECK(checked.problems[0].line == line);
  CHECK(checked.problems[0].message.find(part) != std::string::npos);
  CHECK(!checked.problems[0].hint.empty());
}

}  // namespace hbmscope::testing
