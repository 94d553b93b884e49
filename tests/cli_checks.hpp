#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "helpers.hpp"
#include "process.hpp"

/// What the tests of the command line ask of what a program says.
namespace hbmscope::testing {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

inline Call call(std::string_view arguments) {
  Call made;
  made.arguments = words(arguments);
  return made;
}

/// The program says what is wrong in one line, what to do about it in one more, and ends with `code`.
inline void check_complaint(const Outcome& outcome, int code, std::string_view message_part,
                            std::string_view hint_part = "") {
  CAPTURE(outcome.err);
  CHECK(outcome.code == code);
  const std::vector<std::string> lines = lines_of(outcome.err);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("hbmscope: "));
  CHECK(has(lines[0], message_part));
  REQUIRE(lines[1].starts_with("  hint: "));
  CHECK(lines[1].size() > std::string_view("  hint: ").size());
  CHECK(has(lines[1], hint_part));
}

}  // namespace hbmscope::testing
