#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "sweep/row_file.hpp"

namespace hbmscope {

/// Where the rows of a sweep go, one after the other, as they finish: standard output, or a file that grows. Unlike
/// other results a file of rows is never whole until the sweep is; what is lost when the program ends at any moment is
/// at most a part of one line, and check_rows() finds that.
class RowOutput {
 public:
  /// "-" is standard output. A file is opened, made if it is not there, and locked, so that no other sweep writes to
  /// it. Throws an Error (kind output) where that cannot be, (kind usage) for a file that holds something without
  /// `resume`.
  RowOutput(const std::string& path, bool resume);
  ~RowOutput();
  RowOutput(const RowOutput&) = delete;
  RowOutput& operator=(const RowOutput&) = delete;

  /// What the file holds already, as check_rows() finds it; cuts off a torn last line and goes on behind the last row.
  RowsThere resume(std::int64_t rows, const std::function<ExpectedRow(std::int64_t)>& expected,
                   const std::string& device);
  void append(std::string_view rows);

 private:
  [[noreturn]] void fail(const char* what, int code) const;

  std::string path_;
  int descriptor_;
  bool regular_ = false;
};

}  // namespace hbmscope
