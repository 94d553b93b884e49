#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// Finds what is the tool's in a Markdown file: definitions, inline values, console blocks and cores. All else is the
/// author's, and code is nobody's: fences and code spans are passed over.
namespace hbmscope::lesson {

/// Bytes of the file.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// What is wrong at a line of the file.
struct Problem {
  std::size_t line = 0;
  std::string message;
  std::string hint;
};

/// name = text, from a comment that begins with "let".
struct Definition {
  std::size_t line = 0;
  std::string name;
  std::string text;
  bool refused = false;  ///< is among the problems already; its name is known all the same
};

/// <!--= directive -->shown<!--/-->
struct InlineValue {
  std::size_t line = 0;
  std::string_view directive;  ///< "EXPR as PATTERN"
  Range shown;
  Range whole;  ///< with its comments
};

/// A `$` line of a console block and what is shown of its output.
struct ShownCommand {
  std::size_t line = 0;
  std::string text;                     ///< without "$" and blanks, continued lines joined
  Range whole;                          ///< its own lines
  std::size_t output_line = 0;          ///< of the first line of output
  Range output;                         ///< whole lines
  std::vector<std::string_view> lines;  ///< the same, without what stands before the block and line ends
};

struct ConsoleBlock {
  std::size_t line = 0;
  std::string prefix;               ///< before each line of output: the block may stand in a list or a quote
  std::string_view eol;             ///< "\n" or "\r\n"
  std::string_view fence;           ///< the backticks or tildes that open it
  std::optional<std::size_t> head;  ///< show so many lines of each output
  int exit_code = 0;
  std::vector<ShownCommand> commands;
};

/// <!-- core TOPIC -->, up to its <!-- /core -->
struct CoreMark {
  std::size_t line = 0;
  std::string topic;
  Range inside;
};

using Item = std::variant<Definition, InlineValue, ConsoleBlock>;

struct Scan {
  std::vector<Item> items;  ///< in the order of the file
  std::vector<CoreMark> cores;
  std::vector<Range> comments;  ///< but for those of values
  std::vector<Problem> problems;
  std::size_t other_consoles = 0;  ///< console blocks of other programs
};

/// Views in the result point into `text`. Linear in its length.
Scan scan(std::string_view text);

}  // namespace hbmscope::lesson
