#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hbmscope {

/// The lines of a file of rows, read in pieces, so that memory stays flat.
class LineReader {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

  /// `descriptor` stays the caller's, and is read with pread from the file's beginning.
  LineReader(std::string path, int descriptor);
  /// The next line that a line feed ends, without it; false at the file's end. The text stands until the next call.
  /// Throws an Error (kind data) for a file that cannot be read or a line beyond kMaxLineBytes.
  bool next(std::string_view& line);

  [[nodiscard]] std::int64_t number() const { return number_; }  ///< of the last line, from 1
  [[nodiscard]] std::string place() const;                       ///< "rows.jsonl: line 7"
  [[nodiscard]] std::int64_t offset() const { return offset_; }  ///< of the last line in the file
  [[nodiscard]] std::int64_t end() const { return end_; }        ///< of the last line, its line feed with it
  /// Bytes after the last line feed, once next() has returned false.
  [[nodiscard]] std::size_t torn_bytes() const { return buffer_.size() - begin_; }
  [[nodiscard]] std::string_view torn() const { return std::string_view(buffer_).substr(begin_); }

 private:
  bool read_more();

  std::string path_;
  int descriptor_;
  std::string buffer_;
  std::size_t begin_ = 0, searched_ = 0;
  std::int64_t read_ = 0, offset_ = 0, end_ = 0, number_ = 0;
};

/// Refuses a line that is a row but not as `sweep` writes it: one behind a byte order mark, or with a carriage return.
/// Its bytes could not go on into another file.
void check_bytes_of_row(std::string_view line, const std::string& place);

/// What a file holds already of the rows that are to be written to it.
struct RowsThere {
  std::int64_t rows = 0, failed = 0;
  std::int64_t bytes = 0;      ///< up to the end of the last whole row
  std::size_t torn_bytes = 0;  ///< after it: a line that was cut short
};

/// What the k-th row of a file has to be.
struct ExpectedRow {
  std::int64_t index;
  std::string head;  ///< as RowWriter::append_head() writes it
};

/// Checks that a file holds the first rows of a sweep, or of a shard of it, in their order, and written by this
/// program: `expected(k)` is what row k has to be, of `rows` in all. A last line without a line feed is not counted: it
/// was torn. Anything else is an Error (kind data) with its line, and a hint that says what the file may be instead.
RowsThere check_rows(const std::string& path, int descriptor, std::int64_t rows,
                     const std::function<ExpectedRow(std::int64_t)>& expected, const std::string& device);

}  // namespace hbmscope
