#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hbmscope {

/// Bytes of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none (RFC 3629, section 4).
constexpr std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                             : (lead & 0xF0) == 0xE0        ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
  const bool beyond_unicode = lead == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond_unicode ? 0 : length;
}

/// Appends a Unicode code point, which must be no surrogate, as UTF-8.
inline void append_utf8(std::string& text, std::uint32_t code_point) {
  const auto append = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  const auto append_continuation = [&](int shift) { append(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xC0 | (code_point >> 6));
    append_continuation(0);
  } else if (code_point < 0x10000) {
    append(0xE0 | (code_point >> 12));
    append_continuation(6);
    append_continuation(0);
  } else {
    append(0xF0 | (code_point >> 18));
    append_continuation(12);
    append_continuation(6);
    append_continuation(0);
  }
}

}  // namespace hbmscope
