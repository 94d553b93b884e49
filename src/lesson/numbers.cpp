#include "lesson/numbers.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "core/utf8.hpp"
#include "lesson/markdown.hpp"

namespace hbmscope::lesson {
namespace {

constexpr std::string_view kHeading =
    "# Numbers in the documents that no command computes, file by file, each with some words around it. A changed "
    "number\n"
    "# is found by `hbmscope lesson check --numbers`; `hbmscope lesson build --numbers` writes this list anew.\n";

bool is_word(char c) {
  return is_letter(c) || is_digit(c);
}

/// Up to `most` bytes of text before or behind a number, whole words and whole characters.
constexpr std::size_t kMostAround = 32;

std::string without_controls(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    const bool control = static_cast<unsigned char>(text[i]) < 0x20 || text[i] == 0x7f;
    out += length == 0 || control ? std::string_view(" ") : text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string around(std::string_view line, std::size_t begin, std::size_t end) {
  std::size_t from = begin > kMostAround ? begin - kMostAround : 0;
  if (from > 0) from = std::min(line.substr(0, begin).find(' ', from), begin);
  std::size_t to = std::min(end + kMostAround, line.size());
  if (to < line.size()) {
    const std::size_t blank = line.substr(end, to - end).rfind(' ');
    to = end + (blank == std::string_view::npos ? 0 : blank);
  }
  return without_controls(trimmed(line.substr(from, to - from)));
}

class Numbers {
 public:
  Numbers(std::string_view text, std::span<const Range> computed) : text_(text), computed_(computed) {}

  std::vector<NumberWord> all() {
    std::size_t number = 0;
    for (std::size_t at = 0; at < text_.size();) {
      const Line line = line_at(text_, at);
      at = line.next;
      pass_line(++number, line);
    }
    return std::move(found_);
  }

 private:
  /// Is this byte the tool's? Asked for in rising order.
  bool is_computed(std::size_t at) {
    while (!computed_.empty() && computed_.front().end <= at) computed_ = computed_.subspan(1);
    return !computed_.empty() && computed_.front().begin <= at;
  }

  void pass_line(std::size_t number, Line line) {
    const std::string_view content = text_.substr(line.begin, line.end - line.begin);
    for (std::size_t at = line.begin; at < line.end;) {
      if (!is_word(text_[at]) || is_computed(at)) {
        ++at;
        continue;
      }
      const std::size_t begin = at;
      bool has_digit = false;
      while (at < line.end && belongs(at, line.end) && !is_computed(at)) has_digit = is_digit(text_[at++]) || has_digit;
      if (!has_digit) continue;
      found_.push_back(
          {number, std::string(text_.substr(begin, at - begin)), around(content, begin - line.begin, at - line.begin)});
    }
  }
  /// Letters, digits, and a point or comma between two of them.
  [[nodiscard]] bool belongs(std::size_t at, std::size_t end) const {
    if (is_word(text_[at])) return true;
    return (text_[at] == '.' || text_[at] == ',') && at + 1 < end && is_digit(text_[at + 1]) && is_digit(text_[at - 1]);
  }

  std::string_view text_;
  std::span<const Range> computed_;
  std::vector<NumberWord> found_;
};

/// Are the next few words the same, or both at their end?
bool agree(std::span<const NumberWord> a, std::span<const NumberWord> b) {
  constexpr std::size_t kEnough = 3;
  for (std::size_t i = 0; i < kEnough; ++i) {
    if (i == a.size() || i == b.size()) return a.size() == b.size();
    if (a[i].text != b[i].text) return false;
  }
  return true;
}

/// How many words of either side to pass over until they agree again.
std::pair<std::size_t, std::size_t> gap(std::span<const NumberWord> a, std::span<const NumberWord> b) {
  constexpr std::size_t kFarthest = 32;
  if (!a.empty() && !b.empty() && agree(a.subspan(1), b.subspan(1))) return {1, 1};
  for (std::size_t sum = 1; sum <= kFarthest; ++sum) {
    for (std::size_t of_a = 0; of_a <= sum; ++of_a) {
      const std::size_t of_b = sum - of_a;
      if (of_a <= a.size() && of_b <= b.size() && agree(a.subspan(of_a), b.subspan(of_b))) return {of_a, of_b};
    }
  }
  return {std::min<std::size_t>(a.size(), 1), std::min<std::size_t>(b.size(), 1)};
}

}  // namespace

std::vector<NumberWord> numbers_of(std::string_view text, std::span<const Range> computed) {
  return Numbers(text, computed).all();
}

NumberList parse_number_list(std::string_view text, const std::string& source) {
  const std::string_view begin = kHeading.substr(0, kHeading.find(','));
  if (!text.empty() && !text.starts_with(begin)) {
    throw Error(ErrorKind::data, source + ": is no list of numbers",
                "hbmscope lesson build --numbers FILE writes one; an existing FILE must be one");
  }
  NumberList list;
  std::vector<NumberWord>* words = nullptr;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Line line = line_at(text, at);
    at = line.next;
    ++number;
    const std::string_view content = text.substr(line.begin, line.end - line.begin);
    if (is_blank(content) || content[0] == '#') continue;
    if (content[0] != ' ') {
      words = &list[std::string(trimmed(content))];
    } else if (words == nullptr) {
      throw Error(ErrorKind::data, source + ":" + std::to_string(number) + ": a number before the first file",
                  "write the list anew with hbmscope lesson build --numbers");
    } else {
      const std::string_view word = trimmed(content);
      words->push_back({number, std::string(word.substr(0, word.find(' '))), {}});
    }
  }
  return list;
}

std::string number_list_text(const NumberList& list) {
  std::string text(kHeading);
  for (const auto& [file, words] : list) {
    text += "\n" + file + "\n";
    for (const NumberWord& word : words) {
      text += "  " + word.text;
      if (!word.around.empty())
        text += std::string(word.text.size() < 14 ? 14 - word.text.size() : 0, ' ') + "  " + word.around;
      text += "\n";
    }
  }
  return text;
}

std::vector<Difference> compare_numbers(std::span<const NumberWord> written, std::span<const NumberWord> recorded) {
  std::vector<Difference> differences;
  std::size_t line = written.empty() ? 1 : written.front().line;
  while (!written.empty() || !recorded.empty()) {
    if (!written.empty() && !recorded.empty() && written[0].text == recorded[0].text) {
      line = written[0].line;
      written = written.subspan(1);
      recorded = recorded.subspan(1);
      continue;
    }
    const auto [of_written, of_recorded] = gap(written, recorded);
    for (std::size_t i = 0; i < std::max(of_written, of_recorded); ++i) {
      if (i < of_written) line = written[i].line;
      differences.push_back({line, i < of_written ? written[i].text : "(no number)",
                             i < of_recorded ? recorded[i].text : "(no number)", "the list of numbers", true});
    }
    written = written.subspan(of_written);
    recorded = recorded.subspan(of_recorded);
  }
  return differences;
}

}  // namespace hbmscope::lesson
