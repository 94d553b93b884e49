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
  /// A line that goes on this far has no end: this is a device or a binary file, and nothing after it is read.
  static constexpr std::size_t kEndlessBytes = std::size_t{1} << 30;

  /// Takes the next piece of the input and appends the output of every line that ends in it. After an endless line,
  /// takes nothing more.
  void feed(std::string_view piece, std::string& output);
  /// Takes a last line that no line feed ends.
  void finish(std::string& output);

  [[nodiscard]] std::int64_t lines() const { return lines_; }    ///< answered, blank ones not counted
  [[nodiscard]] std::int64_t failed() const { return failed_; }  ///< answered with an error
  [[nodiscard]] bool endless() const { return endless_; }        ///< the last line has no end

 private:
  void append_rest(std::string_view text, std::string& output);
  void end_line(std::string_view line, std::string& output);
  void fail(std::string_view message, std::string_view hint, std::string& output);

  std::string rest_;         ///< the start of a line whose end has not come
  std::size_t skipped_ = 0;  ///< bytes of a line that is too long to keep; rest_ is empty then
  bool endless_ = false;
  std::int64_t number_ = 0;  ///< of the line in the input, from 1
  std::int64_t lines_ = 0;
  std::int64_t failed_ = 0;
};

}  // namespace hbmscope
