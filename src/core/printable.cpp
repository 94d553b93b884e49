#include "core/printable.hpp"

#include "core/utf8.hpp"

namespace hbmscope {

PrintableCharacter first_printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto hex = [&](std::size_t bytes) {
    std::string out;
    for (const char c : text.substr(0, bytes)) {
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
    return PrintableCharacter{out, bytes};
  };
  const std::size_t length = utf8_length(text);
  const auto first = static_cast<unsigned char>(text[0]);
  if (length == 0 || first < 0x20 || first == 0x7f) return hex(1);
  const bool c1 = length == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
  if (c1) return hex(2);
  return {std::string(text.substr(0, length)), length};
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const PrintableCharacter next = first_printable(text);
    out += next.shown;
    text.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace hbmscope
