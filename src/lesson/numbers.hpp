#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lesson/lesson.hpp"

/// Numbers that nobody computes. They stand in a list that is kept beside the documents, so that none changes unseen.
namespace hbmscope::lesson {

/// A word with a digit in it, such as 8192, H200, 0.1.0 or flash_v1.
struct NumberWord {
  std::size_t line = 0;
  std::string text;
  std::string around;  ///< some words of its line, for readers
};

/// All of a file's in their order, but for those that are computed. Linear.
std::vector<NumberWord> numbers_of(std::string_view text, std::span<const Range> computed);

/// What the list holds: by file, the words in their order.
using NumberList = std::map<std::string, std::vector<NumberWord>>;

/// Reads the list. Throws an Error (kind data) that names `source` and the line.
NumberList parse_number_list(std::string_view text, const std::string& source);
std::string number_list_text(const NumberList& list);

/// Where a file's numbers are not those of the list. A word that is new or gone does not make all that follow it
/// differences.
std::vector<Difference> compare_numbers(std::span<const NumberWord> written, std::span<const NumberWord> recorded);

}  // namespace hbmscope::lesson
