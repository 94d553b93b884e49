#include "lesson/markdown.hpp"

#include <algorithm>
#include <utility>

namespace hbmscope::lesson {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t';
}

/// Characters of "- ", "* ", "+ ", "12. " or "3) " at the start, 0 if there is none.
std::size_t marker_length(std::string_view text) {
  std::size_t length = 0;
  while (length < 9 && length < text.size() && text[length] >= '0' && text[length] <= '9') ++length;
  const std::string_view ends = length == 0 ? "-*+" : ".)";
  if (length >= text.size() || ends.find(text[length]) == std::string_view::npos) return 0;
  ++length;
  return length < text.size() && is_space(text[length]) ? length + 1 : 0;
}

}  // namespace

Line line_at(std::string_view text, std::size_t begin) {
  const std::size_t newline = text.find('\n', begin);
  if (newline == std::string_view::npos) return {begin, text.size(), text.size()};
  const bool has_return = newline > begin && text[newline - 1] == '\r';
  return {begin, newline - (has_return ? 1 : 0), newline + 1};
}

Container container_of(std::string_view line) {
  Container c;
  while (c.length < line.size()) {
    const char first = line[c.length];
    if (is_space(first) || first == '>') {
      c.continued += first;
      c.quotes += first == '>' ? 1 : 0;
      ++c.length;
      continue;
    }
    const std::size_t marker = marker_length(line.substr(c.length));
    if (marker == 0) break;
    c.has_marker = true;
    c.continued.append(marker, ' ');
    c.length += marker;
  }
  return c;
}

std::optional<std::string_view> inside(std::string_view line, std::string_view prefix) {
  std::size_t at = 0;
  for (const char c : prefix) {
    if (c != '>') {
      if (at < line.size() && is_space(line[at])) ++at;
      continue;
    }
    std::size_t mark = at;
    while (mark < line.size() && is_space(line[mark])) ++mark;
    if (mark == line.size() || line[mark] != '>') return std::nullopt;
    at = mark + 1;
  }
  return line.substr(at);
}

std::optional<Fence> opened_fence(std::string_view content) {
  if (!content.starts_with("```") && !content.starts_with("~~~")) return std::nullopt;
  const std::size_t length = std::min(content.find_first_not_of(content[0]), content.size());
  const std::string_view info = trimmed(content.substr(length));
  if (content[0] == '`' && info.find('`') != std::string_view::npos) return std::nullopt;
  return Fence{content.substr(0, length), info};
}

bool closes(std::string_view content, std::string_view run) {
  std::size_t indent = 0;
  while (indent < content.size() && content[indent] == ' ') ++indent;
  if (indent > 3) return false;
  content.remove_prefix(indent);
  const std::size_t length = std::min(content.find_first_not_of(run[0]), content.size());
  return length >= run.size() && is_blank(content.substr(length));
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

bool starts_word(std::string_view text, std::string_view word) {
  return text.starts_with(word) && (text.size() == word.size() || is_blank(text.substr(word.size(), 1)));
}

Backticks::Backticks(std::string_view text, std::size_t begin, std::size_t end) {
  for (std::size_t at = begin; (at = std::min(text.find('`', at), end)) < end;) {
    const std::size_t run_end = std::min(text.find_first_not_of('`', at), end);
    runs_.emplace_back(run_end - at, at);
    at = run_end;
  }
  std::sort(runs_.begin(), runs_.end());
}

std::optional<std::size_t> Backticks::span_end(std::size_t from, std::size_t length) const {
  const auto run = std::lower_bound(runs_.begin(), runs_.end(), std::pair(length, from));
  if (run == runs_.end() || run->first != length) return std::nullopt;
  return run->second + length;
}

}  // namespace hbmscope::lesson
