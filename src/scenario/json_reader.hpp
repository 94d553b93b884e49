#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/input_file.hpp"

namespace hbmscope {

inline constexpr std::size_t kMaxJsonBytes = std::size_t{64} << 20;  ///< a larger text is refused before it is read
inline constexpr std::size_t kMaxJsonDepth = 64;                     ///< of objects and lists in one another

/// The content of a text file of at most kMaxJsonBytes; an Error (kind data) if it cannot be read, is larger, or is no
/// regular file (a pipe is read where `pipes` says so).
std::string read_text_file(const std::string& path, Pipes pipes = Pipes::refused);

/// Strict JSON (RFC 8259): no comments, no trailing commas, no NaN or Infinity, valid UTF-8, no key twice in one
/// object, no more than kMaxJsonDepth levels. A UTF-8 byte order mark at the start is skipped. Throws an Error (kind
/// data) with the line and column in `source_name`; an empty name gives the column alone, as fits one line of many.
nlohmann::json parse_json(std::string_view text, std::string_view source_name);

/// read_text_file() and parse_json() of it.
nlohmann::json read_json_file(const std::string& path);

}  // namespace hbmscope
