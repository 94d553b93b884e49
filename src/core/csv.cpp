#include "core/csv.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "core/utf8.hpp"

namespace hbmscope {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr const char* kDoubleTheQuote = "a field that holds a quote stands in quotes, and the quote is doubled";

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string_view source_name) : text_(text), source_name_(source_name) {
  if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF"))
    fail(1, "the text is UTF-16", "save it as UTF-8; a redirection of Windows PowerShell writes UTF-16");
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  check_utf8();
}

void CsvReader::check_utf8() const {
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t length = utf8_length(text_.substr(at));
    if (length == 0 || text_[at] == '\0') {
      const std::string_view before = text_.substr(0, at);
      fail(1 + std::count(before.begin(), before.end(), '\n'),
           length == 0 ? "this byte is not UTF-8: " + in_quotes(text_.substr(at, 1)) : "there is a NUL byte",
           "CSV is text: is this another kind of file?");
    }
    at += length;
  }
}

std::string_view CsvReader::peek_line() const {
  std::string_view rest = text_.substr(std::min(at_, text_.size()));
  rest = rest.substr(0, rest.find('\n'));
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  return rest;
}

void CsvReader::skip_line() {
  const std::size_t end = text_.find('\n', at_);
  at_ = end == std::string_view::npos ? text_.size() : end + 1;
  ++line_;
}

bool CsvReader::take_line_end() {
  if (at_end()) return true;
  const std::string_view rest = text_.substr(at_);
  const std::size_t length = rest.starts_with("\r\n") ? 2 : rest.starts_with('\n') ? 1 : 0;
  at_ += length;
  if (length > 0) ++line_;
  return length > 0;
}

CsvRecord CsvReader::next() {
  CsvRecord record;
  record.line = line_;
  while (true) {
    record.fields.push_back(peek() == '"' ? quoted_field() : plain_field());
    if (take_line_end()) return record;
    ++at_;  // the comma: a field ends at nothing else
  }
}

std::string CsvReader::quoted_field() {
  const std::int64_t opened = line_;
  std::string field;
  ++at_;
  while (true) {
    const std::size_t quote = text_.find('"', at_);
    if (quote == std::string_view::npos)
      fail(opened, "a quote that opens in this line is never closed", "was the file cut short?");
    const std::string_view part = text_.substr(at_, quote - at_);
    line_ += std::count(part.begin(), part.end(), '\n');
    field += part;
    at_ = quote + 1;
    if (peek() != '"') break;
    field += '"';
    ++at_;
  }
  const std::string_view rest = text_.substr(at_);
  if (!rest.empty() && rest[0] != ',' && rest[0] != '\n' && !rest.starts_with("\r\n")) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(rest));
    fail(line_, "after a closing quote there is " + in_quotes(rest.substr(0, length)) + ", and no comma",
         kDoubleTheQuote);
  }
  return field;
}

std::string CsvReader::plain_field() {
  const std::size_t end = std::min(text_.find_first_of(",\"\r\n", at_), text_.size());
  std::string field(text_.substr(at_, end - at_));
  at_ = end;
  if (peek() == '"') fail(line_, "there is a quote inside the field " + in_quotes(field), kDoubleTheQuote);
  if (peek() == '\r' && !text_.substr(at_).starts_with("\r\n"))
    fail(line_, "there is a carriage return without a line feed", "save the file with LF or CRLF line ends");
  return field;
}

void CsvReader::fail(std::int64_t line, const std::string& sentence, std::string hint) const {
  throw Error(ErrorKind::data, std::string(source_name_) + ": line " + std::to_string(line) + ": " + sentence,
              std::move(hint));
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace hbmscope
