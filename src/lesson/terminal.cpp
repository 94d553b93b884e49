#include "lesson/terminal.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "lesson/markdown.hpp"
#include "lesson/value.hpp"

namespace hbmscope::lesson {
namespace {

// Marks of bold inside a text, no columns wide.
constexpr char kBoldOn = '\x01';
constexpr char kBoldOff = '\x02';

/// Columns, one for each character.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return c != kBoldOn && c != kBoldOff && (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// ---- inside a line --------------------------------------------------------------------------------------------------

/// Without the marks of Markdown: code spans and links as their text, strong words between marks of bold.
class Inline {
 public:
  explicit Inline(std::string_view text) : text_(text), backticks_(text, 0, text.size()) {}

  std::string plain() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\' && at_ + 1 < text_.size() && !is_letter(text_[at_ + 1]) && !is_digit(text_[at_ + 1])) {
        out_ += text_[at_ + 1];
        at_ += 2;
      } else if (c == '`') {
        code();
      } else if (c == '*') {
        stars();
      } else if (c == '[' && link()) {
        continue;
      } else {
        out_ += c == '\n' ? ' ' : c;
        ++at_;
      }
    }
    if (bold_) out_ += kBoldOff;
    return std::move(out_);
  }

 private:
  void code() {
    const std::size_t run = std::min(text_.find_first_not_of('`', at_), text_.size()) - at_;
    const auto end = backticks_.span_end(at_ + run, run);
    const std::size_t stop = end.value_or(at_ + run);
    out_ += end ? trimmed(text_.substr(at_ + run, stop - at_ - 2 * run)) : text_.substr(at_, run);
    at_ = stop;
  }

  /// Stars between two blanks are a product, others emphasis; two of them are bold.
  void stars() {
    const std::size_t run = std::min(text_.find_first_not_of('*', at_), text_.size()) - at_;
    const bool blank_before = at_ == 0 || is_blank(text_.substr(at_ - 1, 1));
    const bool blank_behind = at_ + run >= text_.size() || is_blank(text_.substr(at_ + run, 1));
    const bool product = blank_before && blank_behind;
    if (product) out_ += text_.substr(at_, run);
    if (!product && run >= 2) {
      out_ += bold_ ? kBoldOff : kBoldOn;
      bold_ = !bold_;
    }
    at_ += run;
  }

  /// [text](address)
  bool link() {
    const std::size_t middle = text_.find("](", at_);
    if (middle == std::string_view::npos || middle > text_.find('\n', at_)) return false;
    const std::size_t end = text_.find(')', middle);
    if (end == std::string_view::npos || text_.substr(at_ + 1, middle - at_ - 1).find('[') != std::string_view::npos)
      return false;
    out_ += Inline(text_.substr(at_ + 1, middle - at_ - 1)).plain();
    at_ = end + 1;
    return true;
  }

  std::string_view text_;
  Backticks backticks_;
  std::size_t at_ = 0;
  bool bold_ = false;
  std::string out_;
};

// ---- lines ----------------------------------------------------------------------------------------------------------

/// Words in lines of at most `width` columns, the first of which begins with `first`, the others with `rest`.
std::string wrapped(std::string_view text, std::size_t width, const std::string& first, const std::string& rest) {
  std::string out = first;
  std::size_t column = columns(first);
  bool line_start = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of(' ', at);
    if (begin == std::string_view::npos) break;
    at = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, at - begin);
    if (!line_start && column + 1 + columns(word) > width) {
      out += "\n" + rest;
      column = columns(rest);
      line_start = true;
    }
    if (!line_start) out += ' ';
    column += columns(word) + (line_start ? 0 : 1);
    out += word;
    line_start = false;
  }
  return out + "\n";
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width > columns(text) ? width - columns(text) : 0, ' ');
  return right ? space + text : text + space;
}

std::vector<std::string> cells_of(std::string_view row) {
  row = trimmed(row);
  if (row.starts_with('|')) row.remove_prefix(1);
  if (row.ends_with('|') && !row.ends_with("\\|")) row.remove_suffix(1);
  std::vector<std::string> cells(1);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '\\' && i + 1 < row.size() && row[i + 1] == '|') {
      cells.back() += row[++i];
    } else if (row[i] == '|') {
      cells.emplace_back();
    } else {
      cells.back() += row[i];
    }
  }
  for (std::string& cell : cells) cell = Inline(trimmed(cell)).plain();
  return cells;
}

class Writer {
 public:
  Writer(std::string_view text, int width) : text_(text), width_(static_cast<std::size_t>(width)) {}

  std::string all() {
    for (std::size_t at = 0; at < text_.size();) at = block(at);
    while (out_.ends_with("\n\n")) out_.pop_back();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string_view of(Line line) const { return text_.substr(line.begin, line.end - line.begin); }

  std::size_t block(std::size_t at) {
    const Line line = line_at(text_, at);
    const Container container = container_of(of(line));
    const std::string_view content = of(line).substr(container.length);
    if (is_blank(content)) {
      gap();
      return line.next;
    }
    if (const auto fence = opened_fence(content)) return code(line, container, *fence);
    if (content.starts_with('|')) return table(at);
    if (content.starts_with('#')) {
      const std::size_t level = std::min(content.find_first_not_of('#'), content.size());
      gap();
      out_ += wrapped(kBoldOn + Inline(trimmed(content.substr(level))).plain() + kBoldOff, width_, "", "");
      gap();
      return line.next;
    }
    return paragraph(line, container);
  }

  void gap() {
    if (!out_.empty() && !out_.ends_with("\n\n")) out_ += '\n';
  }

  std::size_t code(Line opening, const Container& container, const Fence& fence) {
    std::size_t at = opening.next;
    while (at < text_.size()) {
      const Line line = line_at(text_, at);
      at = line.next;
      const std::string_view content = inside(of(line), container.continued).value_or(of(line));
      if (closes(content, fence.run)) break;
      out_ += is_blank(content) ? "\n" : "  " + std::string(content) + "\n";
    }
    return at;
  }

  /// A paragraph or a list item with the lines that continue it.
  std::size_t paragraph(Line line, const Container& container) {
    std::string text(of(line).substr(container.length));
    std::size_t at = line.next;
    while (at < text_.size()) {
      const Line next = line_at(text_, at);
      const Container its = container_of(of(next));
      const std::string_view content = of(next).substr(its.length);
      if (is_blank(content) || its.has_marker || content.starts_with('#') || content.starts_with('|') ||
          opened_fence(content))
        break;
      text += "\n" + std::string(content);
      at = next.next;
    }
    out_ +=
        wrapped(Inline(text).plain(), width_, std::string(of(line).substr(0, container.length)), container.continued);
    return at;
  }

  std::size_t table(std::size_t at) {
    std::vector<std::vector<std::string>> rows;
    std::vector<bool> right;
    while (at < text_.size()) {
      const Line line = line_at(text_, at);
      if (!trimmed(of(line)).starts_with('|')) break;
      at = line.next;
      std::vector<std::string> cells = cells_of(of(line));
      const bool rule = std::all_of(cells.begin(), cells.end(), [](const std::string& cell) {
        return !cell.empty() && cell.find_first_not_of("-:") == std::string::npos;
      });
      if (rule && rows.size() == 1 && right.empty()) {
        for (const std::string& cell : cells) right.push_back(cell.ends_with(':'));
      } else {
        rows.push_back(std::move(cells));
      }
    }
    write_table(rows, right);
    return at;
  }

  void write_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], columns(row[c]));
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::string line = "  ";
      const bool head = r == 0 && !right.empty();
      if (head) line += kBoldOn;
      for (std::size_t c = 0; c + 1 < rows[r].size(); ++c)
        line += padded(rows[r][c], widths[c], c < right.size() && right[c]) + "  ";
      const std::size_t last = rows[r].size() - 1;
      const bool last_right = last < right.size() && right[last];
      const std::string indent(columns(line), ' ');
      std::string cell = padded(rows[r][last], last_right ? widths[last] : 0, last_right);
      // Only the last column is wrapped: the others hold what is compared.
      const bool fits = columns(line) + columns(cell) <= width_;
      std::string written =
          fits ? line + cell + "\n" : wrapped(cell, std::max(width_, columns(line) + 16), line, indent);
      if (head) written.insert(written.size() - 1, 1, kBoldOff);
      while (written.ends_with(" \n")) written.erase(written.size() - 2, 1);
      out_ += written;
    }
  }

  std::string_view text_;
  std::size_t width_;
  std::string out_;
};

}  // namespace

std::string to_terminal(std::string_view markdown, int width, bool bold) {
  std::string out;
  const std::string written = Writer(markdown, width).all();
  for (std::size_t i = 0; i < written.size(); ++i) {
    const char c = written[i];
    if (c == kBoldOn || c == kBoldOff) {
      if (bold) out += c == kBoldOn ? "\x1b[1m" : "\x1b[0m";
    } else if (std::string_view(written).substr(i).starts_with("\xC2\xA0")) {  // a no-break space has done its work
      out += ' ';
      ++i;
    } else if (static_cast<unsigned char>(c) >= 0x20 || c == '\n') {
      out += c;
    }
  }
  return out;
}

}  // namespace hbmscope::lesson
