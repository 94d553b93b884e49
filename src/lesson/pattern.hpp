#pragma once
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "lesson/value.hpp"

namespace hbmscope::lesson {

/// A value that is not 0 would be written as 0.
struct Vanished : Error {
  using Error::Error;
};

/// Writes a value as its pattern shows: "0.0 MB", "0,000", "0x", "0 %", "0.0e0", "0k", "0.0 million", "text"; "auto"
/// and "auto binary" choose digits and prefix as reports do. Throws an Error (kind data) where the pattern is none or
/// its unit does not fit the value's, and Vanished.
std::string written(const Value& value, std::string_view pattern);

}  // namespace hbmscope::lesson
