#include "plot/escape.hpp"

#include "core/utf8.hpp"

namespace hbmscope::plot {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// U+FFFE and U+FFFF, and the marks that turn the direction of the text around them, with which a title could make a
/// picture say something else.
bool is_forbidden(std::string_view character) {
  if (character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF") return true;
  if (character.size() != 3 || !character.starts_with("\xE2")) return false;
  return (character >= "\xE2\x80\xAA" && character <= "\xE2\x80\xAE") ||
         (character >= "\xE2\x81\xA6" && character <= "\xE2\x81\xA9");
}

}  // namespace

std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(character.size());
    const char first = character[0];
    if (first == '\n' || first == '\r' || first == '\t') {
      out += ' ';
    } else if (length == 0 || (first >= 0 && first < 0x20) || first == 0x7f || is_forbidden(character)) {
      out += kReplacement;
    } else {
      out += character;
    }
  }
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : clean(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace hbmscope::plot
