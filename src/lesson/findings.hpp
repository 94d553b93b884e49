#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "lesson/lesson.hpp"

namespace hbmscope::lesson {

struct Counts {
  std::size_t files = 0, values = 0, blocks = 0, other_consoles = 0, differences = 0, problems = 0;
};
Counts count(std::span<const Checked> all);
/// "1 file", "2 files"
std::string counted(std::size_t number, std::string_view one);
/// "12 files, 81 values, 9 blocks, 1 console block of other programs left alone"
std::string in_words(const Counts& counts);

/// A line for each error and each difference, in the order of the file:
/// `file:line: written "537 MB", computed "538 MB" (EXPR)`.
std::string finding_lines(const Checked& checked);

/// The same for programs.
nlohmann::ordered_json findings_to_json(std::span<const Checked> all, const std::vector<std::string>& argv);

}  // namespace hbmscope::lesson
