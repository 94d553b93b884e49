#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace hbmscope {

/// A text of anybody, which must not steer a terminal: control characters, those of the C1 set too, and what is no
/// UTF-8 as \xNN.
std::string printable(std::string_view text);

/// The first character of a text as printable() shows it, and how many bytes it takes; the text must not be empty.
struct PrintableCharacter {
  std::string shown;
  std::size_t bytes;
};
PrintableCharacter first_printable(std::string_view text);

}  // namespace hbmscope
