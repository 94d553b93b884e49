// CSV as RFC 4180 has it, and complaints that name the line.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "core/csv.hpp"
#include "core/error.hpp"

using namespace hbmscope;

namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(std::string_view text) {
  CsvReader reader(text, "file.csv");
  Rows rows;
  while (!reader.at_end()) rows.push_back(reader.next().fields);
  return rows;
}

std::vector<std::int64_t> lines_of(std::string_view text) {
  CsvReader reader(text, "file.csv");
  std::vector<std::int64_t> lines;
  while (!reader.at_end()) lines.push_back(reader.next().line);
  return lines;
}

/// What reading all of `text` complains of; empty if it does not.
std::string complaint(std::string_view text) {
  try {
    (void)rows_of(text);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK_FALSE(error.hint().empty());
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("fields stand between commas, and records between line ends of either kind") {
  CHECK(rows_of("a,b\nc,d\n") == Rows{{"a", "b"}, {"c", "d"}});
  CHECK(rows_of("a,b\r\nc,d\r\n") == Rows{{"a", "b"}, {"c", "d"}});
  CHECK(rows_of("a,b\nc,d") == Rows{{"a", "b"}, {"c", "d"}});
  CHECK(rows_of(" a , b ") == Rows{{" a ", " b "}});
  CHECK(rows_of(",\n,,") == Rows{{"", ""}, {"", "", ""}});
  CHECK(rows_of("a\n\nb\n") == Rows{{"a"}, {""}, {"b"}});
  CHECK(rows_of("").empty());
}

TEST_CASE("quotes keep commas, line ends and doubled quotes inside a field") {
  CHECK(rows_of("\"a,b\",\"c\"\n") == Rows{{"a,b", "c"}});
  CHECK(rows_of("\"1,234,567\"") == Rows{{"1,234,567"}});
  CHECK(rows_of("\"say \"\"no\"\"\",x") == Rows{{"say \"no\"", "x"}});
  CHECK(rows_of("\"two\nlines\",\"and\r\nmore\"\r\nnext") == Rows{{"two\nlines", "and\r\nmore"}, {"next"}});
  CHECK(rows_of("\"\",\"\"\"\"") == Rows{{"", "\""}});
  CHECK(rows_of("void f<\xC3\xA4>(int),1") == Rows{{"void f<\xC3\xA4>(int)", "1"}});
}

TEST_CASE("a byte order mark is no part of the first field") {
  CHECK(rows_of("\xEF\xBB\xBF\"ID\",x") == Rows{{"ID", "x"}});
}

TEST_CASE("a record knows its line, also after fields of several lines") {
  CHECK(lines_of("a\nb\n\nc") == std::vector<std::int64_t>{1, 2, 3, 4});
  CHECK(lines_of("\"a\nb\r\nc\",d\ne") == std::vector<std::int64_t>{1, 4});
}

TEST_CASE("lines that are no CSV can be looked at and passed over") {
  CsvReader reader("==PROF== \"x\": 50%\r\na,b\n== end", "file.csv");
  CHECK(reader.peek_line() == "==PROF== \"x\": 50%");
  reader.skip_line();
  CHECK(reader.line() == 2);
  CHECK(reader.next().fields == std::vector<std::string>{"a", "b"});
  CHECK(reader.peek_line() == "== end");
  reader.skip_line();
  CHECK(reader.at_end());
}

TEST_CASE("what breaks the rules is a complaint that names file and line") {
  CHECK(complaint("a\n\"b\nc") == "file.csv: line 2: a quote that opens in this line is never closed");
  CHECK(complaint("a,\"b\"c\n") == "file.csv: line 1: after a closing quote there is \"c\", and no comma");
  CHECK(complaint("\"a\nb\" ,c").starts_with("file.csv: line 2: after a closing quote"));
  CHECK(complaint("a\nb \"c\"\n") == "file.csv: line 2: there is a quote inside the field \"b \"");
  CHECK(complaint("a\rb") == "file.csv: line 1: there is a carriage return without a line feed");
  CHECK(complaint("a\nb,\xFFz") == "file.csv: line 2: this byte is not UTF-8: \"\\xff\"");
  CHECK(complaint(std::string_view("a\nb\0c", 5)) == "file.csv: line 2: there is a NUL byte");
  CHECK(complaint("\xFF\xFE\x22") == "file.csv: line 1: the text is UTF-16");
}

TEST_CASE("what is written as a field is read as it was") {
  std::mt19937 random(7);
  constexpr std::string_view kLetters = "ab,\"\n\r; ";
  for (int i = 0; i < 2000; ++i) {
    Rows written(1 + random() % 3);
    std::string text;
    for (std::vector<std::string>& row : written) {
      row.resize(1 + random() % 4);
      for (std::size_t f = 0; f < row.size(); ++f) {
        for (std::size_t n = random() % 6; n > 0; --n) row[f] += kLetters[random() % kLetters.size()];
        text += (f > 0 ? "," : "") + csv_field(row[f]);
      }
      text += random() % 2 == 0 ? "\n" : "\r\n";
    }
    CAPTURE(text);
    CHECK(rows_of(text) == written);
  }
}
