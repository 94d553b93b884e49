#include "lesson/console_block.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/suggest.hpp"

namespace hbmscope::lesson {
namespace {

constexpr std::string_view kPrompt = "$ ";

/// One command and its output, from line `i` on, which is moved to the next command.
ShownCommand read_command(const std::vector<FencedLine>& lines, std::size_t& i, std::size_t first_line) {
  ShownCommand command;
  command.line = first_line + i;
  command.whole = {lines[i].line.begin, lines[i].line.next};
  command.text = lines[i++].content.substr(kPrompt.size());
  while (command.text.ends_with('\\') && i < lines.size()) {
    command.text.back() = ' ';
    command.whole.end = lines[i].line.next;
    command.text += trimmed(lines[i++].content);
  }
  command.output_line = first_line + i;
  const std::size_t first = i;
  while (i < lines.size() && !lines[i].content.starts_with(kPrompt)) ++i;
  // Blank lines before the next command are the author's.
  std::size_t last = i;
  while (last > first && is_blank(lines[last - 1].content)) --last;
  command.output = {command.whole.end, last > first ? lines[last - 1].line.next : command.whole.end};
  for (std::size_t l = first; l < last; ++l) command.lines.push_back(lines[l].content);
  return command;
}

/// "head=12 exit=2"
std::optional<Problem> read_options(ConsoleBlock& block, std::string_view info) {
  constexpr std::array<std::string_view, 2> kKnown{"head", "exit"};
  for (info = trimmed(info); !info.empty(); info = trimmed(info)) {
    const std::string_view word = info.substr(0, info.find_first_of(" \t"));
    info.remove_prefix(word.size());
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view key = word.substr(0, equals), digits = word.substr(std::min(equals + 1, word.size()));
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool whole = error == std::errc() && end == digits.data() + digits.size() && number >= 0;
    if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end()) {
      return Problem{block.line, "does not know the option " + in_quotes(word) + " of a console block",
                     did_you_mean(key, kKnown)};
    }
    if (!whole || (key == "exit" && number > 255)) {
      return Problem{block.line, in_quotes(word) + " needs a whole number",
                     "write head=12 (lines to show) or exit=2 (the exit code to expect)"};
    }
    if (key == "head") block.head = static_cast<std::size_t>(number);
    if (key == "exit") block.exit_code = number;
  }
  return std::nullopt;
}

}  // namespace

bool is_console(const Fence& fence, const std::vector<FencedLine>& lines) {
  if (lines.empty() || !starts_word(fence.info, "console")) return false;
  const std::string_view first = lines[0].content;
  return starts_word(first, "$ hbmscope") || starts_word(first, "$ ./dev run") ||
         starts_word(first, "$ ./dev hbmscope");
}

std::optional<ConsoleBlock> read_console(const FencePlace& place, const std::vector<FencedLine>& lines,
                                         std::vector<Problem>& problems) {
  ConsoleBlock block;
  block.line = place.line;
  block.prefix = place.prefix;
  block.eol = place.eol;
  block.fence = place.fence.run;
  if (auto problem = read_options(block, place.fence.info.substr(std::string_view("console").size()))) {
    problems.push_back(std::move(*problem));
    return std::nullopt;
  }
  for (std::size_t i = 0; i < lines.size();) block.commands.push_back(read_command(lines, i, place.line + 1));
  return block;
}

}  // namespace hbmscope::lesson
