#pragma once
#include <string>
#include <variant>
#include <vector>

namespace hbmscope {

struct Column {
  std::string header;
  bool right = true;  ///< numbers stand to the right
};

/// A table with a title and, under it, what its columns mean or how its figures came about.
struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> notes;
};

struct Paragraph {
  std::string text;
  bool answer = false;  ///< the sentence a reader came for
};

/// "Paper       N d + N^2 = ...": lines with a label.
struct Labelled {
  std::string label;
  std::string text;
};

/// Lines of characters that make a picture: shown as they are.
struct Drawing {
  std::string title;
  std::vector<std::string> lines;
};

/// What a report says, before anybody decides how it looks.
using Block = std::variant<Paragraph, Table, Labelled, Drawing>;
using Document = std::vector<Block>;

/// For a terminal: columns aligned, paragraphs wrapped at `width`; bold where `colour`.
std::string to_text(const Document& document, int width, bool colour);
std::string to_markdown(const Document& document);

}  // namespace hbmscope
