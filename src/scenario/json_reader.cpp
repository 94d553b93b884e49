#include "scenario/json_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/file_error.hpp"
#include "core/suggest.hpp"
#include "core/utf8.hpp"

namespace hbmscope {

using nlohmann::json;

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

[[noreturn]] void fail_file(const std::string& path, const std::string& rest, std::string hint = {}) {
  throw Error(ErrorKind::data, path + ": " + rest, std::move(hint));
}

std::string too_large(std::string_view noun) {
  return std::string(noun) + " is larger than " + std::to_string(kMaxJsonBytes >> 20) + " MiB, the most that is read";
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Recursive descent over the grammar of RFC 8259. nlohmann's own parser knows neither the place of a key nor a limit
/// of depth, lets a key stand twice, stops at a NUL byte, and is slower; a fuzz target compares the two.
class Parser {
 public:
  Parser(std::string_view text, std::string_view source_name) : text_(text), source_name_(source_name) {}

  json parse() {
    if (text_.size() > kMaxJsonBytes) fail(0, too_large("the text"), "split it");
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    skip_space();
    json value = parse_value(0);
    skip_space();
    if (at_ < text_.size()) fail_expected("the end of the text");
    return value;
  }

 private:
  /// The next byte; 0 at the end of the text. A NUL byte in the text is nowhere allowed, so the two need no telling
  /// apart here.
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  void skip_space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t') ++at_;
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }

  json parse_value(std::size_t depth) {
    switch (peek()) {
      case '{':
        return parse_object(depth);
      case '[':
        return parse_array(depth);
      case '"':
        return parse_string();
      case 't':
        return parse_word("true", true);
      case 'f':
        return parse_word("false", false);
      case 'n':
        return parse_word("null", nullptr);
      default:
        break;
    }
    if (peek() == '-' || is_digit(peek())) return parse_number();
    fail_expected("a value");
  }

  void enter(std::size_t depth) {
    if (depth == kMaxJsonDepth) {
      fail(at_, "objects and lists stand more than " + std::to_string(kMaxJsonDepth) + " deep in one another",
           "flatten them");
    }
    ++at_;
    skip_space();
  }

  json parse_object(std::size_t depth) {
    json::object_t members;
    enter(depth);
    if (take('}')) return members;
    while (true) {
      const std::size_t key_at = at_;
      if (peek() != '"') fail_expected("a key in double quotes");
      const auto [member, is_new] = members.try_emplace(parse_string());
      if (!is_new)
        fail(key_at, "the key " + in_quotes(member->first) + " stands in this object twice", "remove one of the two");
      skip_space();
      if (!take(':')) fail_expected("':' after the key " + in_quotes(member->first));
      skip_space();
      member->second = parse_value(depth + 1);
      skip_space();
      if (take('}')) return members;
      if (!take(',')) fail_expected("',' or '}'");
      skip_space();
    }
  }

  json parse_array(std::size_t depth) {
    json::array_t elements;
    enter(depth);
    if (take(']')) return elements;
    while (true) {
      elements.push_back(parse_value(depth + 1));
      skip_space();
      if (take(']')) return elements;
      if (!take(',')) fail_expected("',' or ']'");
      skip_space();
    }
  }

  template <class T>
  json parse_word(std::string_view word, T value) {
    if (!rest().starts_with(word)) fail_expected("a value");
    at_ += word.size();
    return value;
  }

  void skip_digits() {
    if (!is_digit(peek())) fail_expected("a digit");
    while (is_digit(peek())) ++at_;
  }

  json parse_number() {
    const std::size_t first = at_;
    const bool is_negative = take('-');
    if (!take('0')) skip_digits();
    bool is_whole = true;
    if (take('.')) {
      is_whole = false;
      skip_digits();
    }
    if (take('e') || take('E')) {
      is_whole = false;
      if (!take('+')) take('-');
      skip_digits();
    }
    const std::string_view number = text_.substr(first, at_ - first);
    // A whole number beyond 64 bits becomes a double, which Fields refuses where a whole number is wanted.
    if (std::int64_t value = 0; is_whole && is_negative && read_number(number, value)) return value;
    if (std::uint64_t value = 0; is_whole && !is_negative && read_number(number, value)) return value;
    double value = 0;
    if (!read_number(number, value))
      fail(first, "the number " + in_quotes(number) + " is beyond the range of a double",
           "write null for an unknown value");
    return value;
  }
  template <class T>
  static bool read_number(std::string_view number, T& value) {
    return std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc{};
  }

  std::string parse_string() {
    std::string text;
    ++at_;
    while (true) {
      const std::size_t first = at_;
      while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
      text.append(text_, first, at_ - first);
      if (at_ == text_.size()) fail_end();
      if (take('"')) return text;
      if (take('\\')) {
        append_escaped(text);
        continue;
      }
      if (static_cast<unsigned char>(peek()) < 0x20)
        fail(at_, "a control character in a text must be escaped", "write \\n for a new line, \\t for a tab");
      const std::size_t length = utf8_length(rest());
      if (length == 0)
        fail(at_, "this byte is not UTF-8: " + in_quotes(text_.substr(at_, 1)), "save the file as UTF-8");
      text.append(text_, at_, length);
      at_ += length;
    }
  }
  static constexpr bool is_plain(char c) {
    return c >= 0x20 && c != '"' && c != '\\' && static_cast<unsigned char>(c) < 0x80;
  }

  void append_escaped(std::string& text) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (at_ == text_.size()) fail_end();
    if (take('u')) {
      append_utf8(text, parse_escaped_code_point());
      return;
    }
    const std::size_t which = kEscapes.find(peek());
    if (which == std::string_view::npos)
      fail(at_, "there is no escape \\" + shown_character(), "write \\\\ for a backslash");
    text += kMeanings[which];
    ++at_;
  }
  std::uint32_t parse_four_hex_digits() {
    std::uint32_t unit = 0;
    const std::string_view digits = rest().substr(0, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (error != std::errc{} || end != digits.data() + 4)
      fail(at_, "\\u needs four hexadecimal digits", "write \\u00e9 for an e with an acute accent");
    at_ += 4;
    return unit;
  }
  /// Characters beyond U+FFFF are written as two escapes, a high and a low surrogate.
  std::uint32_t parse_escaped_code_point() {
    const std::size_t first = at_ - 2;
    const std::uint32_t unit = parse_four_hex_digits();
    if (unit < 0xD800 || unit > 0xDFFF) return unit;
    if (unit < 0xDC00 && take('\\') && take('u')) {
      if (const std::uint32_t low = parse_four_hex_digits(); low >= 0xDC00 && low <= 0xDFFF) {
        return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
      }
    }
    fail(first, "half of a surrogate pair stands alone", "write the character itself, in UTF-8");
  }
  [[nodiscard]] std::string shown_character() const {
    return in_quotes(rest().substr(0, std::max<std::size_t>(1, utf8_length(rest()))));
  }
  [[noreturn]] void fail_end() const {
    fail(text_.size(), "the text ends before its JSON does", "is it empty, or was it cut short?");
  }
  [[noreturn]] void fail_expected(const std::string& expected) const {
    if (at_ >= text_.size()) fail_end();
    for (const std::string_view word : {"NaN", "Infinity"}) {
      if (rest().starts_with(word)) fail(at_, std::string(word) + " is not JSON", "write null for an unknown value");
    }
    std::string hint = "look for a missing or an extra comma, quote or bracket";
    if (peek() == '\0') hint = "JSON is UTF-8 text: is this UTF-16, or a binary file?";
    if (peek() == '/' || peek() == '#') hint = "JSON has no comments";
    if (peek() == '\'') hint = "JSON takes double quotes only";
    fail(at_, "expected " + expected + ", got " + shown_character(), std::move(hint));
  }
  /// Throws the Error of one place. Lines and columns count from 1, columns in characters.
  [[noreturn]] void fail(std::size_t offset, const std::string& sentence, std::string hint) const {
    const std::string_view before = text_.substr(0, offset);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    std::string_view in_line = before.substr(before.rfind('\n') + 1);
    if (in_line.starts_with(kByteOrderMark)) in_line.remove_prefix(kByteOrderMark.size());
    // Every character has one byte that is no UTF-8 continuation byte.
    const auto column = 1 + std::count_if(in_line.begin(), in_line.end(), [](char c) { return (c & 0xC0) != 0x80; });
    const std::string in_column = "column " + std::to_string(column);
    const std::string where =
        source_name_.empty() && line == 1 ? in_column : "line " + std::to_string(line) + ", " + in_column;
    const std::string prefix = source_name_.empty() ? "" : std::string(source_name_) + ": ";
    throw Error(ErrorKind::data, prefix + where + ": " + sentence, std::move(hint));
  }

  std::string_view text_;
  std::string_view source_name_;
  std::size_t at_ = 0;
};

}  // namespace

std::string read_text_file(const std::string& path, Pipes pipes) {
  const int descriptor = open_input(path, pipes);
  const std::unique_ptr<const int, void (*)(const int*)> closer(&descriptor, [](const int* open) { ::close(*open); });
  std::error_code ignored;
  const std::uintmax_t size = std::filesystem::file_size(path, ignored);
  if (!ignored && size > kMaxJsonBytes) fail_file(path, too_large("the file"), "split it");
  std::string text;
  constexpr std::size_t kChunk = 1 << 16;
  while (true) {
    const std::size_t used = text.size();
    if (used > kMaxJsonBytes) fail_file(path, too_large("the file"), "split it");  // a pipe has no size before
    text.resize(used + kChunk);
    ssize_t count = 0;
    do {
      count = ::read(descriptor, text.data() + used, kChunk);
    } while (count < 0 && errno == EINTR);
    if (count < 0) fail_file(path, "could not be read to its end", "check the disk");
    text.resize(used + static_cast<std::size_t>(count));
    if (count == 0) return text;
  }
}

nlohmann::json parse_json(std::string_view text, std::string_view source_name) {
  return Parser(text, source_name).parse();
}

nlohmann::json read_json_file(const std::string& path) {
  return parse_json(read_text_file(path), path);
}

}  // namespace hbmscope
