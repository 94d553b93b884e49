#pragma once
#include <string>
#include <string_view>

#include "lesson/value.hpp"

namespace hbmscope::lesson {

/// Writes a value as its pattern shows: "0.0 MB", "0,000", "0x", "0 %", "0.0e0", "0k", "0.0 million", "text"; "auto"
/// and "auto binary" choose digits and prefix as reports do. Throws an Error (kind data) where the pattern is none or
/// its unit does not fit the value's.
std::string written(const Value& value, std::string_view pattern);

}  // namespace hbmscope::lesson
