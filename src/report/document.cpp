#include "report/document.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace hbmscope {
namespace {

std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::string space(width > text.size() ? width - text.size() : 0, ' ');
  return right ? space + std::string(text) : std::string(text) + space;
}

/// The part of a word that a line of `room` columns takes: all of it, or up to a joint of a path that is longer than
/// any line. An address stays whole, so that it can be copied.
std::string_view fitting(std::string_view word, std::size_t room) {
  if (word.size() <= room || word.find("://") != std::string_view::npos) return word;
  const std::size_t joint = word.substr(0, room).find_last_of(".,/");
  return joint == std::string_view::npos || joint == 0 ? word : word.substr(0, joint + 1);
}

/// Breaks at spaces; further lines start with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t width, std::size_t first, std::size_t indent) {
  std::string out;
  std::size_t column = first;
  bool line_start = true;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = fitting(text.substr(0, space), width - std::min(indent, width));
    if (!line_start && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      line_start = true;
    }
    if (!line_start) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    line_start = false;
    text.remove_prefix(word.size());
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  return out + "\n";
}

class TextWriter {
 public:
  TextWriter(int width, bool colour) : width_(static_cast<std::size_t>(width)), colour_(colour) {}

  void operator()(const Paragraph& p) {
    gap();
    out_ += bold(wrapped(p.text, width_, 0, 0), p.answer);
    after_label_ = false;
  }
  void operator()(const Labelled& l) {
    if (!after_label_) gap();
    out_ += bold(padded(l.label, kLabelWidth, false), true) + wrapped(l.text, width_, kLabelWidth, kLabelWidth);
    after_label_ = true;
  }
  void operator()(const Table& t) {
    gap();
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < t.columns.size(); ++c) {
      std::size_t widest = t.columns[c].header.size();
      for (const auto& row : t.rows) widest = std::max(widest, row[c].size());
      widths.push_back(widest);
    }
    // The title shares its line with the headers where it fits over the left-hand columns.
    std::size_t left = 2;
    std::size_t first_right = 0;
    for (; first_right < t.columns.size() && !t.columns[first_right].right; ++first_right)
      left += widths[first_right] + 2;
    const bool one_line = !t.title.empty() && t.title.size() + 1 <= left &&
                          std::all_of(t.columns.begin(), t.columns.begin() + static_cast<std::ptrdiff_t>(first_right),
                                      [](const Column& c) { return c.header.empty(); });
    if (!one_line && !t.title.empty()) out_ += bold(t.title + "\n", true);
    std::string head = one_line ? padded(t.title, left, false) : "  ";
    for (std::size_t c = one_line ? first_right : 0; c < t.columns.size(); ++c)
      head += padded(t.columns[c].header, widths[c], t.columns[c].right) + "  ";
    out_ += bold(trim(head) + "\n", one_line);
    for (const auto& row : t.rows) {
      std::string line = "  ";
      for (std::size_t c = 0; c < row.size(); ++c) line += padded(row[c], widths[c], t.columns[c].right) + "  ";
      out_ += trim(line) + "\n";
    }
    for (const std::string& note : t.notes) out_ += "  " + wrapped(note, width_, 2, 4);
    after_label_ = false;
  }
  void operator()(const Drawing& d) {
    gap();
    out_ += bold(d.title + "\n", true);
    for (const std::string& line : d.lines) out_ += line + "\n";
    after_label_ = false;
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  static constexpr std::size_t kLabelWidth = 12;

  static std::string trim(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  }
  void gap() {
    if (!out_.empty()) out_ += "\n";
  }
  [[nodiscard]] std::string bold(std::string text, bool wanted) const {
    if (!colour_ || !wanted) return text;
    const bool newline = text.ends_with('\n');
    if (newline) text.pop_back();
    return "\x1b[1m" + text + "\x1b[0m" + (newline ? "\n" : "");
  }

  std::size_t width_;
  bool colour_;
  bool after_label_ = false;
  std::string out_;
};

/// A cell must not end its column or start markup.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '<' || c == '`') out += '\\';
    out += c;
  }
  return out;
}

class MarkdownWriter {
 public:
  void operator()(const Paragraph& p) {
    gap();
    out_ += p.answer ? "**" + escaped(p.text) + "**\n" : escaped(p.text) + "\n";
    in_list_ = false;
  }
  void operator()(const Labelled& l) {
    if (!in_list_) gap();
    out_ += "- **" + escaped(l.label) + ":** " + escaped(l.text) + "\n";
    in_list_ = true;
  }
  void operator()(const Table& t) {
    gap();
    if (!t.title.empty()) out_ += "**" + escaped(t.title) + "**\n\n";
    std::string rule = "|";
    out_ += "|";
    for (const Column& c : t.columns) {
      out_ += " " + escaped(c.header) + " |";
      rule += c.right ? " ---: |" : " --- |";
    }
    out_ += "\n" + rule + "\n";
    for (const auto& row : t.rows) {
      out_ += "|";
      for (const std::string& cell : row) out_ += " " + escaped(cell) + " |";
      out_ += "\n";
    }
    if (!t.notes.empty()) out_ += "\n";
    for (const std::string& note : t.notes) out_ += escaped(note) + "\n";
    in_list_ = false;
  }
  void operator()(const Drawing& d) {
    gap();
    out_ += "**" + escaped(d.title) + "**\n\n```\n";
    for (const std::string& line : d.lines) out_ += line + "\n";
    out_ += "```\n";
    in_list_ = false;
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void gap() {
    if (!out_.empty()) out_ += "\n";
  }
  bool in_list_ = false;
  std::string out_;
};

}  // namespace

std::string to_text(const Document& document, int width, bool colour) {
  TextWriter writer(width, colour);
  for (const Block& block : document) std::visit(writer, block);
  return writer.take();
}

std::string to_markdown(const Document& document) {
  MarkdownWriter writer;
  for (const Block& block : document) std::visit(writer, block);
  return writer.take();
}

}  // namespace hbmscope
