#include "lesson/scan.hpp"

#include <algorithm>
#include <utility>

#include "core/suggest.hpp"
#include "lesson/console_block.hpp"
#include "lesson/markdown.hpp"
#include "lesson/value.hpp"

namespace hbmscope::lesson {
namespace {

constexpr std::string_view kOpen = "<!--";
constexpr std::string_view kClose = "-->";
constexpr std::string_view kEnd = "<!--/-->";

bool is_topic(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-'; });
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Scan all() {
    std::size_t at = text_.starts_with("\xEF\xBB\xBF") ? 3 : 0;
    bool line_start = true;
    while (at < text_.size()) {
      if (line_start) {
        const Line line = line_at(text_, at);
        const Container container = container_of(of(line));
        if (const auto fence = opened_fence(of(line).substr(container.length))) {
          at = pass_fence(line, container, *fence);
          continue;
        }
      }
      at = pass_text(at, stretch_end(at));
      line_start = at == text_.size() || text_[at - 1] == '\n';
    }
    if (open_core_) {
      problem(result_.cores.back().line, "the core " + in_quotes(result_.cores.back().topic) + " has no end",
              "write <!-- /core --> behind it");
      result_.cores.pop_back();
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::string_view of(Line line) const { return text_.substr(line.begin, line.end - line.begin); }
  [[nodiscard]] std::string_view between(std::size_t begin, std::size_t end) const {
    return text_.substr(begin, end - begin);
  }

  /// The line number of a place; places are asked for in rising order.
  std::size_t line_number(std::size_t at) {
    if (at < counted_to_)
      return 1 +
             static_cast<std::size_t>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    number_ += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_to_),
                                                   text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    counted_to_ = at;
    return number_;
  }
  void problem(std::size_t line, std::string message, std::string hint) {
    result_.problems.push_back({line, std::move(message), std::move(hint)});
  }

  // ---- text ---------------------------------------------------------------------------------------------------------

  /// How far a code span that begins at `at` could reach: to the next blank line, fence, heading, table row, list item,
  /// quote or comment.
  [[nodiscard]] std::size_t stretch_end(std::size_t at) const {
    Line line = line_at(text_, at);
    const std::size_t quotes = container_of(of(line)).quotes;
    const bool alone = breaks(of(line).substr(container_of(of(line)).length), "#|");
    if (is_blank(of(line)) || alone) return line.next;
    while (line.next < text_.size()) {
      const Line next = line_at(text_, line.next);
      const Container container = container_of(of(next));
      const std::string_view content = of(next).substr(container.length);
      if (is_blank(content) || container.has_marker || container.quotes != quotes || breaks(content, "#|") ||
          content.starts_with(kOpen) || opened_fence(content))
        break;
      line = next;
    }
    return line.next;
  }
  static bool breaks(std::string_view content, std::string_view first_characters) {
    return !content.empty() && first_characters.find(content[0]) != std::string_view::npos;
  }

  /// Reads from `at` to `end`, or beyond it to the end of a comment; returns how far it came.
  std::size_t pass_text(std::size_t at, std::size_t end) {
    const Backticks backticks(text_, at, end);
    while (at < end) {
      at = std::min(text_.find_first_of("\\`<", at), end);
      if (at == end) break;
      if (text_[at] == '\\') {
        at = std::min(at + 2, end);
      } else if (text_[at] == '`') {
        const std::size_t run = std::min(text_.find_first_not_of('`', at), end) - at;
        at = backticks.span_end(at + run, run).value_or(at + run);
      } else if (text_.substr(at).starts_with(kOpen)) {
        at = pass_comment(at);
      } else {
        ++at;
      }
    }
    return at;
  }

  // ---- comments -----------------------------------------------------------------------------------------------------

  std::size_t pass_comment(std::size_t at) {
    const std::size_t begin = at + kOpen.size();
    if (text_.substr(begin).starts_with("=")) return pass_value(at);
    if (text_.substr(at).starts_with(kEnd)) {
      if (!end_missing_)
        problem(line_number(at), "<!--/--> ends a value that never began",
                "a value is <!--= EXPR as PATTERN -->...<!--/-->");
      end_missing_ = false;
      return at + kEnd.size();
    }
    const std::size_t close = close_from(begin);
    const std::string_view start = trimmed(text_.substr(begin, std::min(close, text_.size()) - begin).substr(0, 64));
    const bool definitions = starts_word(start, "let"), mark = starts_word(start, "core") || start == "/core";
    const bool ours = definitions || mark;
    // A comment that another opens in took its end from that one.
    if (close == std::string_view::npos || (ours && between(begin, close).find(kOpen) != std::string_view::npos)) {
      if (ours || (!told_unclosed_ && begins_line(at)))
        problem(line_number(at), "a comment has no end", "write --> behind it");
      told_unclosed_ = told_unclosed_ || !ours;
      return ours ? line_at(text_, at).next : begin;
    }
    result_.comments.push_back({at, close + kClose.size()});
    if (definitions) pass_definitions({begin, close});
    if (mark) pass_core_mark(at, {begin, close});
    return close + kClose.size();
  }

  /// In CommonMark a comment that begins a line hides all that follows; another is text if it has no end.
  [[nodiscard]] bool begins_line(std::size_t at) const {
    const std::size_t newline = text_.substr(0, at).rfind('\n');
    return is_blank(between(newline == std::string_view::npos ? 0 : newline, at));
  }

  /// The next --> from `begin` on. What was found once is not searched for again.
  std::size_t close_from(std::size_t begin) {
    if (begin < close_searched_from_ || begin > close_) {
      close_searched_from_ = begin;
      close_ = text_.find(kClose, begin);
    }
    return close_;
  }

  /// The line that holds `at`, which may be long and hold many values.
  const Line& line_of(std::size_t at) {
    if (at < line_.begin || at > line_.end || line_.next == 0) {
      const std::size_t newline = text_.substr(0, at).rfind('\n');
      line_ = line_at(text_, newline == std::string_view::npos ? 0 : newline + 1);
    }
    return line_;
  }

  std::size_t pass_value(std::size_t at) {
    const std::size_t line = line_number(at);
    const std::size_t begin = at + kOpen.size() + 1;
    const std::size_t close = close_from(begin);
    if (close >= line_of(at).end || between(begin, close).find(kOpen) != std::string_view::npos) {
      problem(line, "the comment of a value has no end on its line",
              "write <!--= EXPR as PATTERN -->...<!--/--> on one line");
      end_missing_ = true;
      return begin;
    }
    const std::size_t shown = close + kClose.size();
    const std::string_view here = text_.substr(0, line_of(at).end);
    const std::size_t end = std::min(here.find(kOpen, shown), here.size());
    const std::string_view directive = trimmed(between(begin, close));
    end_missing_ = !here.substr(end).starts_with(kEnd);
    if (end_missing_) {
      problem(line, "the value " + in_quotes(directive) + " has no end on its line",
              "write <!--/--> behind the number");
      return shown;
    }
    if (directive.find('|') != std::string_view::npos || directive.find("--") != std::string_view::npos) {
      problem(line, "the value " + in_quotes(directive) + " holds | or --",
              "| would split the cell of a table and -- may end the comment: give the part a name with let");
    } else if (between(shown, end).find('`') != std::string_view::npos) {
      problem(line, "the text of the value " + in_quotes(directive) + " holds `", "leave it to build: write ? there");
    } else {
      const Line& whole = line_of(at);
      if (container_of(between(whole.begin, at)).length == at - whole.begin)
        problem(line, "the value " + in_quotes(directive) + " begins its line",
                "Markdown would take the whole line for HTML: write a word before it");
      result_.items.emplace_back(InlineValue{line, directive, {shown, end}, {at, end + kEnd.size()}});
    }
    return end + kEnd.size();
  }

  /// "let a = 1", or "let" and a definition a line.
  void pass_definitions(Range body) {
    std::size_t at = text_.find("let", body.begin) + 3;
    while (at < body.end) {
      Line line = line_at(text_, at);
      const std::size_t number = line_number(at);
      std::string text;
      while (true) {
        const std::string_view part = definition_part(at, std::min(line.end, body.end));
        text += part;
        at = line.next;
        if (!text.ends_with('\\') || at >= body.end) break;
        text.back() = ' ';
        line = line_at(text_, at);
      }
      if (!text.empty()) pass_definition(number, text);
    }
  }
  /// A definition may stand in a quote or a list, as the text around it.
  [[nodiscard]] std::string_view definition_part(std::size_t begin, std::size_t end) const {
    std::string_view part = trimmed(between(begin, end));
    while (part.starts_with('>')) part = trimmed(part.substr(1));
    return part;
  }
  void pass_definition(std::size_t line, std::string_view text) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string_view name = trimmed(text.substr(0, equals));
    const bool is_name = !name.empty() && is_letter(name[0]) &&
                         std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c); });
    if (!is_name || equals == text.size()) {
      problem(line, in_quotes(text) + " is no definition", "write NAME = VALUE, such as N = 8192, one a line");
    } else if (is_reserved(name)) {
      problem(line, in_quotes(name) + " is a unit or a function and cannot be a name", "take another name");
      result_.items.emplace_back(Definition{line, std::string(name), {}, true});
    } else {
      result_.items.emplace_back(Definition{line, std::string(name), std::string(trimmed(text.substr(equals + 1)))});
    }
  }

  void pass_core_mark(std::size_t at, Range body) {
    const std::size_t line = line_number(at);
    const std::string_view text = trimmed(between(body.begin, body.end));
    if (text == "/core") {
      if (!open_core_)
        problem(line, "<!-- /core --> ends a core that never began", "a core begins with <!-- core TOPIC -->");
      if (open_core_) result_.cores.back().inside.end = at;
      open_core_ = false;
      return;
    }
    const std::string_view topic = trimmed(text.substr(4));
    if (!is_topic(topic)) {
      problem(line, in_quotes(topic) + " is no topic",
              "a topic is lower-case letters, digits and -, as in <!-- core online-softmax -->");
    } else if (open_core_) {
      problem(line, "a core begins inside the core " + in_quotes(result_.cores.back().topic),
              "end that one first, with <!-- /core -->");
    } else {
      const auto same = [&](const CoreMark& core) { return core.topic == topic; };
      if (std::any_of(result_.cores.begin(), result_.cores.end(), same))
        problem(line, "there is a core " + in_quotes(topic) + " already", "give it another topic");
      open_core_ = true;
      result_.cores.push_back({line, std::string(topic), {body.end + kClose.size(), 0}});
    }
  }

  // ---- fences -------------------------------------------------------------------------------------------------------

  std::size_t pass_fence(Line opening, const Container& container, const Fence& fence) {
    std::vector<FencedLine> lines;
    std::size_t at = opening.next;
    bool closed = false;
    while (at < text_.size() && !closed) {
      const Line line = line_at(text_, at);
      const auto content = inside(of(line), container.continued);
      if (!content) break;
      at = line.next;
      closed = closes(*content, fence.run);
      if (!closed) lines.push_back({line, *content});
    }
    const std::size_t number = line_number(opening.begin);
    if (!closed) {
      problem(number, "the fence " + in_quotes(fence.run) + " is never closed",
              "write as many " + std::string(fence.run[0] == '`' ? "backticks" : "tildes") +
                  " on a line of their own; a fence around another needs more of them");
    } else if (auto mistaken = mistaken_console(fence, lines, number)) {
      result_.problems.push_back(std::move(*mistaken));
    } else if (is_other_console(fence, lines)) {
      ++result_.other_consoles;
    } else if (is_console(fence, lines)) {
      const std::string_view eol = between(opening.end, opening.next);
      auto block = read_console({number, container.continued, eol, fence}, lines, result_.problems);
      if (block) result_.items.emplace_back(std::move(*block));
    }
    return at;
  }

  std::string_view text_;
  Scan result_;
  bool open_core_ = false;
  std::size_t counted_to_ = 0, number_ = 1;
  std::size_t close_searched_from_ = std::string_view::npos, close_ = 0;
  Line line_;  ///< that was asked for last
  bool told_unclosed_ = false;
  bool end_missing_ = false;  ///< of the value before: its end may still come, and is no second error
};

}  // namespace

Scan scan(std::string_view text) {
  return Scanner(text).all();
}

}  // namespace hbmscope::lesson
