#pragma once
#include <stdexcept>
#include <string>
#include <utility>

namespace hbmscope {

/// What went wrong, by the exit code a caller sees (docs/cli.md).
enum class ErrorKind {
  output = 1,  ///< a result could not be written, or the GPU failed
  usage = 2,   ///< the command line
  data = 3,    ///< the content of a file or of standard input
  device = 4,  ///< a device or counters were required and are not there
  check = 5,   ///< a check or a comparison failed
};

/// One sentence that names the option, key or file at fault, and a hint that says what to do about it.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message, std::string hint = {})
      : std::runtime_error(std::move(message)), kind_(kind), hint_(std::move(hint)) {}
  [[nodiscard]] ErrorKind kind() const { return kind_; }
  [[nodiscard]] const std::string& hint() const { return hint_; }

 private:
  ErrorKind kind_;
  std::string hint_;
};

}  // namespace hbmscope
