#include "lesson/console_block.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/suggest.hpp"

namespace hbmscope::lesson {
namespace {

/// The words behind the $ of a line.
std::string_view behind_prompt(std::string_view content) {
  return trimmed(content.substr(1));
}

bool runs_hbmscope(std::string_view command) {
  if (starts_word(command, "hbmscope")) return true;
  if (!starts_word(command, "./dev")) return false;
  const std::string_view rest = trimmed(command.substr(std::string_view("./dev").size()));
  return starts_word(rest, "run") || starts_word(rest, "hbmscope");
}

/// What the author of this command may have meant to run; empty if another program.
std::string_view meant(std::string_view command) {
  constexpr std::array<std::string_view, 1> kProgram{"hbmscope"};
  constexpr std::array<std::string_view, 1> kScript{"./dev"};
  constexpr std::array<std::string_view, 2> kOfDev{"run", "hbmscope"};
  constexpr std::size_t kTooShort = 3;  // to be the beginning of anything
  const std::string_view word = command.substr(0, command.find_first_of(" \t"));
  const std::string_view file = word.substr(word.rfind('/') + 1);
  if (word == "./dev") {
    const std::string_view rest = trimmed(command.substr(word.size()));
    const auto near = near_names(rest.substr(0, rest.find_first_of(" \t")), kOfDev);
    if (near.empty()) return {};
    return near.front() == kOfDev[0] ? "./dev run" : "./dev hbmscope";
  }
  if (file.size() > kTooShort && !near_names(file, kProgram).empty()) return kProgram[0];
  const bool near_script = word.starts_with("./") && word.size() > kTooShort && !near_names(word, kScript).empty();
  return near_script || fold_name(file) == "dev" ? "./dev run" : "";
}

/// One command and its output, from line `i` on, which is moved to the next command.
ShownCommand read_command(const std::vector<FencedLine>& lines, std::size_t& i, std::size_t first_line) {
  ShownCommand command;
  command.line = first_line + i;
  command.whole = {lines[i].line.begin, lines[i].line.next};
  command.text = behind_prompt(lines[i].content);
  ++i;
  while (command.text.ends_with('\\') && i < lines.size()) {
    command.text.back() = ' ';
    command.whole.end = lines[i].line.next;
    command.text += trimmed(lines[i++].content);
  }
  command.output_line = first_line + i;
  const std::size_t first = i;
  while (i < lines.size() && !begins_command(lines[i].content)) ++i;
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

bool begins_command(std::string_view content) {
  if (!content.starts_with('$') || content.size() < 2) return false;
  return is_blank(content.substr(1, 1)) || runs_hbmscope(behind_prompt(content));
}

bool is_console(const Fence& fence, const std::vector<FencedLine>& lines) {
  if (lines.empty() || !starts_word(fence.info, "console")) return false;
  return begins_command(lines[0].content) && runs_hbmscope(behind_prompt(lines[0].content));
}

bool is_other_console(const Fence& fence, const std::vector<FencedLine>& lines) {
  const bool empty = std::all_of(lines.begin(), lines.end(), [](const FencedLine& l) { return is_blank(l.content); });
  return starts_word(fence.info, "console") && !empty && !is_console(fence, lines);
}

std::optional<Problem> mistaken_console(const Fence& fence, const std::vector<FencedLine>& lines, std::size_t line) {
  if (!is_other_console(fence, lines)) return std::nullopt;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view content = trimmed(lines[i].content);
    const std::size_t here = line + 1 + i;
    if (content.starts_with('$') && runs_hbmscope(behind_prompt(content))) {
      return Problem{here, "a console block that runs hbmscope begins with other lines",
                     "let its first line be " + in_quotes(content) + ", and show the others in a block of their own"};
    }
    if (content.starts_with('$')) {
      const std::string_view other = meant(behind_prompt(content));
      if (!other.empty()) {
        return Problem{here, "a console block runs " + in_quotes(behind_prompt(content)) + ", which is not checked",
                       "did you mean \"$ " + std::string(other) + "\"?"};
      }
    } else if (i == 0 && runs_hbmscope(content)) {
      return Problem{here, "the command " + in_quotes(content) + " of a console block stands without its $",
                     "write $ before a command; output alone stands in a ```text block"};
    }
  }
  return std::nullopt;
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
