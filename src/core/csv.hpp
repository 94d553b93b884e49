#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hbmscope {

/// One record of a CSV text, its quotes undone.
struct CsvRecord {
  std::vector<std::string> fields;
  std::int64_t line = 0;  ///< where it begins, from 1
};

/// Reads CSV as RFC 4180 has it: fields between commas, in double quotes where they hold a comma, a line end or a quote
/// (which is then doubled). Lines end in CRLF or LF, the last one in neither if it likes. A UTF-8 byte order mark at
/// the start is no part of the first field. What breaks these rules is an Error (kind data) that names the line.
class CsvReader {
 public:
  /// Both must outlive the reader. `source_name` stands at the front of every error: a path, or "standard input".
  CsvReader(std::string_view text, std::string_view source_name);

  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  /// Of the next record, from 1.
  [[nodiscard]] std::int64_t line() const { return line_; }
  /// The next line without its end, for a reader that knows lines which are no CSV; and past it.
  [[nodiscard]] std::string_view peek_line() const;
  void skip_line();

  /// The next record; there must be one. An empty line is a record of one empty field.
  CsvRecord next();

  [[noreturn]] void fail(std::int64_t line, const std::string& sentence, std::string hint) const;

 private:
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take_line_end();
  std::string quoted_field();
  std::string plain_field();
  void check_utf8() const;

  std::string_view text_;
  std::string_view source_name_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

/// `text` as a CSV field: in quotes where it needs them.
std::string csv_field(std::string_view text);

}  // namespace hbmscope
