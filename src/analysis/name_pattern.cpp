#include "analysis/name_pattern.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/error.hpp"
#include "core/suggest.hpp"

namespace hbmscope {
namespace {

constexpr std::string_view kRepetitions = "*+?{";

/// Past a bracket expression that begins at `at`; its first ']' is a member of the set.
std::size_t past_set(std::string_view text, std::size_t at) {
  std::size_t begin = at + 1;
  if (begin < text.size() && text[begin] == '^') ++begin;
  const std::size_t end = text.find(']', begin + 1);
  return end == std::string_view::npos ? text.size() : end + 1;
}

/// The largest number in the braces that open at `at`; 1 where there is none.
int most_copies(std::string_view text, std::size_t at) {
  int most = 1, number = 0;
  for (const char c : text.substr(at + 1)) {
    if (c >= '0' && c <= '9') {
      number = std::min(number * 10 + (c - '0'), NamePattern::kMostCopies + 1);
      most = std::max(most, number);
    } else if (c == ',') {
      number = 0;
    } else {
      break;
    }
  }
  return most;
}

/// What the compiler would take but must not; empty if there is nothing.
std::string fault_of(std::string_view text) {
  if (text.size() > NamePattern::kMaxLength)
    return "has " + std::to_string(text.size()) + " characters, more than " + std::to_string(NamePattern::kMaxLength);
  int copies = 1;
  bool at_start = true;  // of the whole, a group or an alternative
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (at_start && kRepetitions.find(c) != std::string_view::npos)
      return "is no regular expression: nothing stands before " + std::string(1, c);
    at_start = c == '(' || c == '|';
    if (c == '[') {
      i = past_set(text, i);
      continue;
    }
    if (c == '\\' && i + 1 < text.size()) {
      const char escaped = text[i + 1];
      if (escaped >= '0' && escaped <= '9') return "refers back to a group, which may take forever";
      if (std::isalpha(static_cast<unsigned char>(escaped)) != 0 &&
          std::string_view("wWsSbB").find(escaped) == std::string_view::npos)
        return "is no POSIX extended regular expression: it has \\" + std::string(1, escaped);
      i += 2;
      continue;
    }
    if (c == '{') {
      copies *= most_copies(text, i);
      if (copies > NamePattern::kMostCopies)
        return "repeats a part more than " + std::to_string(NamePattern::kMostCopies) + " times";
    }
    ++i;
  }
  return "";
}

[[noreturn]] void refuse(const std::string& expression, const std::string& what) {
  const bool is_long = expression.size() > NamePattern::kMaxLength;
  throw Error(ErrorKind::usage, "--kernel: " + (is_long ? "the expression" : in_quotes(expression)) + " " + what,
              "a part of the name will do; \\ before one of . * + ? ( ) [ ] { } | makes it stand for itself");
}

}  // namespace

NamePattern::NamePattern(const std::string& expression) {
  if (const std::string fault = fault_of(expression); !fault.empty()) refuse(expression, fault);
  const int code = ::regcomp(&compiled_, expression.c_str(), REG_EXTENDED | REG_NOSUB);
  if (code == 0) return;
  std::array<char, 256> why{};
  ::regerror(code, &compiled_, why.data(), why.size());
  refuse(expression, std::string("is no regular expression: ") + why.data());
}

NamePattern::~NamePattern() {
  ::regfree(&compiled_);
}

bool NamePattern::is_in(std::string_view name) const {
  const std::string begin(name.substr(0, kMostMatched));
  return ::regexec(&compiled_, begin.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace hbmscope
