#pragma once
#include <atomic>
#include <chrono>
#include <string>

namespace hbmscope {

/// A line on standard error that shows how far long work is: only on a terminal, only after a second, gone when the
/// work is done.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// `fraction` from 0 to 1; from any thread.
  void at(double fraction);
  /// What is being done now, of work that cannot tell how far it is.
  void doing(const std::string& what);
  /// Takes the line away, before anything else is written to the terminal.
  void clear();

 private:
  [[nodiscard]] bool late() const;

  std::string what_;
  bool wanted_;
  std::chrono::steady_clock::time_point start_;
  std::atomic<int> shown_percent_{-1};
  std::atomic<bool> shown_{false};
};

}  // namespace hbmscope
