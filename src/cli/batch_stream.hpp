#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hbmscope {

/// `hbmscope batch` without its files: text in pieces of any size in, lines out. Holds one line at most, so memory
/// stays flat however long the input is.
class BatchStream {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;  ///< a longer line is skipped, with an error

  /// Takes the next piece of the input and appends the output of every line that ends in it.
  void feed(std::string_view piece, std::string& output);
  /// Takes a last line that no line feed ends.
  void finish(std::string& output);

  [[nodiscard]] std::int64_t lines() const { return lines_; }    ///< answered, blank ones not counted
  [[nodiscard]] std::int64_t failed() const { return failed_; }  ///< answered with an error

 private:
  void append_rest(std::string_view text);
  void end_line(std::string_view line, std::string& output);
  void fail(std::string_view message, std::string_view hint, std::string& output);

  std::string rest_;         ///< the start of a line whose end has not come
  bool too_long_ = false;    ///< rest_ was dropped
  std::int64_t number_ = 0;  ///< of the line in the input, from 1
  std::int64_t lines_ = 0;
  std::int64_t failed_ = 0;
};

}  // namespace hbmscope
