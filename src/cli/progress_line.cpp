#include "cli/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/output.hpp"

namespace hbmscope {

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), wanted_(stderr_is_terminal()), start_(std::chrono::steady_clock::now()) {}

bool ProgressLine::late() const {
  return wanted_ && std::chrono::steady_clock::now() - start_ >= std::chrono::seconds(1);
}

void ProgressLine::doing(const std::string& what) {
  if (!late()) return;
  shown_ = true;
  const std::string line = fmt::format("\r\x1b[K{}", what);
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

void ProgressLine::at(double fraction) {
  if (!late()) return;
  const int percent = static_cast<int>(fraction * 100);
  if (shown_percent_.exchange(percent) == percent) return;
  shown_ = true;
  const std::string line = fmt::format("\r{}: {} %", what_, percent);
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::clear() {
  if (!shown_.exchange(false)) return;
  constexpr std::string_view kClear = "\r\x1b[K";
  (void)!::write(STDERR_FILENO, kClear.data(), kClear.size());
}

}  // namespace hbmscope
