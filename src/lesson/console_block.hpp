#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lesson/markdown.hpp"
#include "lesson/scan.hpp"

namespace hbmscope::lesson {

struct FencedLine {
  Line line;
  std::string_view content;  ///< without what stands before the block
};

/// Where a fence stands and how it begins.
struct FencePlace {
  std::size_t line = 0;
  std::string prefix;
  std::string_view eol;
  Fence fence;
};

/// Does this line of a console block begin a command: with $ and a blank, or with $ and the program at once?
bool begins_command(std::string_view content);

/// Is this a block that the tool writes: a console whose first line runs hbmscope?
bool is_console(const Fence& fence, const std::vector<FencedLine>& lines);
/// Is it a console of other programs?
bool is_other_console(const Fence& fence, const std::vector<FencedLine>& lines);
/// What is wrong with a console that is no block of the tool's and was probably meant as one; nothing if it was not.
std::optional<Problem> mistaken_console(const Fence& fence, const std::vector<FencedLine>& lines, std::size_t line);

/// Its commands and what is shown of them; nothing, and a problem, where its options are wrong.
std::optional<ConsoleBlock> read_console(const FencePlace& place, const std::vector<FencedLine>& lines,
                                         std::vector<Problem>& problems);

}  // namespace hbmscope::lesson
