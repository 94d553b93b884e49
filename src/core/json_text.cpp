#include "core/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/utf8.hpp"

namespace hbmscope {
namespace {

void append_escaped(std::string& to, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr std::string_view kNamed = "\"\"\\\\\bb\ff\nn\rr\tt";
  for (std::size_t i = 0; i < kNamed.size(); i += 2) {
    if (static_cast<unsigned char>(kNamed[i]) != byte) continue;
    to += '\\';
    to += kNamed[i + 1];
    return;
  }
  to += "\\u00";
  to += kDigits[byte >> 4];
  to += kDigits[byte & 15];
}

bool is_plain(char c) {
  return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\';
}

}  // namespace

void JsonText::separate() {
  // No value ends in one of these: what stands behind them is the first of its kind.
  constexpr std::string_view kBefore = "{[:\n";
  if (!to_->empty() && kBefore.find(to_->back()) == std::string_view::npos) *to_ += ',';
}

void JsonText::open(char bracket) {
  separate();
  *to_ += bracket;
}

void JsonText::key(std::string_view name) {
  separate();
  *to_ += '"';
  *to_ += name;
  *to_ += "\":";
}

void JsonText::value(std::nullptr_t) {
  raw("null");
}

void JsonText::value(bool truth) {
  raw(truth ? "true" : "false");
}

void JsonText::value(std::int64_t number) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  raw({digits, static_cast<std::size_t>(end - digits)});
}

void JsonText::value(double number) {
  if (!std::isfinite(number)) return value(nullptr);
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  const std::string_view text(digits, static_cast<std::size_t>(end - digits));
  raw(text);
  if (text.find_first_of(".e") == std::string_view::npos) *to_ += ".0";  // a real stays one
}

void JsonText::value(std::string_view text) {
  separate();
  quote(text);
}

void JsonText::raw(std::string_view json) {
  separate();
  *to_ += json;
}

void JsonText::quote(std::string_view text) {
  *to_ += '"';
  while (!text.empty()) {
    const std::size_t plain =
        static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
    to_->append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t length = utf8_length(text);
    if (length > 1 || text[0] == 0x7f) {
      to_->append(text.substr(0, length));
    } else if (length == 1) {
      append_escaped(*to_, static_cast<unsigned char>(text[0]));
    } else {
      append_utf8(*to_, 0xFFFD);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  *to_ += '"';
}

}  // namespace hbmscope
