#pragma once
#include <cctype>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace hbmscope {

/// "cannot open shapes.jsonl: no such file": the same words wherever a file is read. `code` is an errno; 0 is one that
/// nobody told.
inline Error cannot_open(const std::string& path, int code,
                         std::string hint = "check the path; it starts in the folder that the program was started in") {
  std::string why = "it cannot be read";
  if (code == ENOENT || code == ENOTDIR) {
    why = "no such file";
  } else if (code != 0) {
    why = std::generic_category().message(code);
    why[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(why[0])));
    if (code == EACCES) hint = "check the right to read it";
  }
  return {ErrorKind::data, "cannot open " + path + ": " + why, std::move(hint)};
}

}  // namespace hbmscope
