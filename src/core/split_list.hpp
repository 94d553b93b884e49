#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hbmscope {

/// The parts of "a,b,c"; of an empty text one empty part.
inline std::vector<std::string> split_list(std::string_view text, char separator = ',') {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace hbmscope
