#pragma once
#include <cstdint>
#include <string_view>

#include "core/units.hpp"

namespace hbmscope {

// Numbers of a command line. The whole text must be the number, '.' is the decimal point whatever the locale says, and
// anything else is an Error (kind usage) that names `option`.

/// A whole number, with a sign or without: "8192", "-1".
std::int64_t parse_integer(std::string_view text, std::string_view option);

/// A length, 0 or more; k, M and G (either case) stand for 2^10, 2^20 and 2^30: "8192", "8k", "1.5k" = 1536.
std::int64_t parse_length(std::string_view text, std::string_view option);

/// A length that counts things, such as heads: the same texts, and an error that does not speak of lengths. `least` is
/// for its hint only; the caller checks it.
std::int64_t parse_count(std::string_view text, std::string_view option, std::int64_t least = 1);

/// A number of bytes, 0 or more: "232448", "227KiB", "50 MiB", "1.5MB". kB, MB, GB and TB are powers of 1000; KiB, MiB,
/// GiB and TiB powers of 1024. Decimals are fine as long as the product is a whole number of bytes.
Bytes parse_bytes(std::string_view text, std::string_view option);

/// A finite real number: "0.3", "1e-6", "-2".
double parse_real(std::string_view text, std::string_view option);

}  // namespace hbmscope
