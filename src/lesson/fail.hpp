#pragma once
#include <string>

#include "core/error.hpp"

namespace hbmscope::lesson {

/// What a lesson says cannot be computed; the caller adds file and line.
[[noreturn]] inline void fail(const std::string& what, const std::string& hint) {
  throw Error(ErrorKind::data, what, hint);
}

}  // namespace hbmscope::lesson
