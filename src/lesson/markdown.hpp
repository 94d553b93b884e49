#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// As much of CommonMark as tells code and comments from text: containers, fences and code spans, a line at a time.
namespace hbmscope::lesson {

struct Line {
  std::size_t begin = 0;
  std::size_t end = 0;   ///< before the line end
  std::size_t next = 0;  ///< the first byte of the next line
};

/// The line that begins at `begin`.
Line line_at(std::string_view text, std::size_t begin);

/// What stands before a line's own content: blanks, '>' and list markers.
struct Container {
  std::size_t length = 0;
  std::string continued;  ///< what lines of the same container begin with: markers become blanks
  bool has_marker = false;
  std::size_t quotes = 0;
};
Container container_of(std::string_view line);

/// The part of `line` behind a container's prefix; nothing where the line has left its quote. Less indentation than
/// the prefix has is fine.
std::optional<std::string_view> inside(std::string_view line, std::string_view prefix);

struct Fence {
  std::string_view run;   ///< "```" or longer, or of tildes
  std::string_view info;  ///< without blanks around it
};
/// The fence that a line's content opens.
std::optional<Fence> opened_fence(std::string_view content);
/// Does this content close a fence that `run` opened?
bool closes(std::string_view content, std::string_view run);

bool is_blank(std::string_view text);
std::string_view trimmed(std::string_view text);
/// Does the text begin with this word, and then end or go on with a blank?
bool starts_word(std::string_view text, std::string_view word);

/// The runs of backticks of a stretch of text, to find the end of a code span without looking twice at anything.
class Backticks {
 public:
  Backticks(std::string_view text, std::size_t begin, std::size_t end);
  /// Where the code span ends that `length` backticks open before `from`; nothing where no such run follows.
  [[nodiscard]] std::optional<std::size_t> span_end(std::size_t from, std::size_t length) const;

 private:
  std::vector<std::pair<std::size_t, std::size_t>> runs_;  ///< length and place, sorted
};

}  // namespace hbmscope::lesson
