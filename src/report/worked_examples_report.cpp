#include "report/worked_examples_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "report/format.hpp"

namespace hbmscope {
namespace {

using Json = nlohmann::ordered_json;

/// Columns that keep a table within 100 characters beside names and values as long as they are.
constexpr std::size_t kQuestionWidth = 27, kValueWidth = 24;

std::string plain(double value) {
  if (value != 0 && std::abs(value) < 1e-3) return text::scientific(value);
  return text::significant(value, 5);
}

std::string in_words(double value, Unit unit) {
  switch (unit.quantity) {
    case Quantity::bytes:
      if (unit.size == 1) return text::integer(std::llround(value)) + " B";
      return text::bytes(Bytes(std::llround(value)));
    case Quantity::binary_bytes:
      return text::binary_bytes(Bytes(std::llround(value)));
    case Quantity::flop:
      return text::flop(Flop(std::llround(value)));
    case Quantity::seconds:
      return text::seconds({value});
    case Quantity::byte_rate:
      return text::byte_rate({value});
    case Quantity::intensity:
      return text::intensity({value}) + " FLOP/B";
    case Quantity::number:
      break;
  }
  return plain(value);
}

/// One text a value, as many as a list has elements.
struct Words {
  const WorkedValue& value;
  std::vector<std::string> operator()(std::monostate) const { return {"- (" + value.reason + ")"}; }
  std::vector<std::string> operator()(bool yes) const { return {yes ? "yes" : "no"}; }
  std::vector<std::string> operator()(std::int64_t whole) const {
    if (value.unit.quantity == Quantity::number) return {text::integer(whole)};
    return {in_words(static_cast<double>(whole), value.unit)};
  }
  std::vector<std::string> operator()(double real) const { return {in_words(real, value.unit)}; }
  std::vector<std::string> operator()(const std::string& words) const { return {words}; }
  template <class T>
  std::vector<std::string> operator()(const std::vector<T>& list) const {
    std::vector<std::string> all;
    for (const T& element : list) all.push_back((*this)(element).front());
    return all;
  }
};

/// Pieces in lines of at most `width` characters, `separator` between pieces of one line.
std::vector<std::string> lines_of(const std::vector<std::string>& pieces, std::string_view separator,
                                  std::string_view line_end, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& piece : pieces) {
    if (!lines.empty() && lines.back().size() + separator.size() + piece.size() <= width) {
      lines.back() += std::string(separator) + piece;
    } else {
      if (!lines.empty()) lines.back() += line_end;
      lines.push_back(piece);
    }
  }
  return lines;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

/// The value's lines: a list breaks between its elements, words between words.
std::vector<std::string> value_lines(const WorkedValue& value) {
  const std::vector<std::string> pieces = std::visit(Words{value}, value.content);
  if (pieces.size() == 1) return lines_of(words_of(pieces[0]), " ", "", kValueWidth);
  return lines_of(pieces, ", ", ",", kValueWidth);
}

void add_rows(const WorkedExample& example, Table& to) {
  const std::vector<std::string> question = lines_of(words_of(example.entry->question), " ", "", kQuestionWidth);
  std::vector<std::vector<std::string>> rows;  // name, value
  for (const WorkedValue& value : example.values.all()) {
    std::string name(value.name);
    for (const std::string& line : value_lines(value)) {
      rows.push_back({name, line});
      name.clear();
    }
  }
  for (std::size_t i = 0; i < std::max(question.size(), rows.size()); ++i) {
    to.rows.push_back({i == 0 ? std::string(example.entry->id) : "", i < question.size() ? question[i] : "",
                       i < rows.size() ? rows[i][0] : "", i < rows.size() ? rows[i][1] : "",
                       i == 0 ? std::string(name(example.entry->provenance)) : ""});
  }
}

Table theme_table(const WorkedTheme& theme, std::span<const WorkedExample> examples) {
  Table t{std::string(theme.title),
          {{"id", false}, {"question or claim", false}, {"value", false}, {"", false}, {"from", false}},
          {},
          {}};
  for (const WorkedEntry& entry : theme.entries) {
    const auto found =
        std::find_if(examples.begin(), examples.end(), [&](const WorkedExample& e) { return e.entry == &entry; });
    if (found == examples.end()) continue;
    add_rows(*found, t);
    if (!entry.remark.empty()) t.notes.push_back(fmt::format("{}: {}", entry.id, entry.remark));
    if (!entry.source.empty()) t.notes.push_back(fmt::format("{}, source: {}", entry.id, entry.source));
  }
  return t;
}

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

/// In the unit of the name. A whole multiple of it stays whole.
struct ToJson {
  Unit unit;
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(bool yes) const { return yes; }
  Json operator()(std::int64_t whole) const {
    const auto size = static_cast<std::int64_t>(unit.size);
    return whole % size == 0 ? Json(whole / size) : number_or_null(static_cast<double>(whole) / unit.size);
  }
  Json operator()(double real) const {
    // Times a million rather than over a millionth, which is no binary number.
    return number_or_null(unit.size < 1 ? real * std::round(1 / unit.size) : real / unit.size);
  }
  Json operator()(const std::string& words) const { return words; }
  template <class T>
  Json operator()(const std::vector<T>& list) const {
    Json all = Json::array();
    for (const T& element : list) all.push_back((*this)(element));
    return all;
  }
};

Json values_json(const WorkedValues& values) {
  Json out = Json::object();
  for (const WorkedValue& value : values.all())
    out[std::string(value.name)] = std::visit(ToJson{value.unit}, value.content);
  return out;
}

Json text_or_null(std::string_view words) {
  return words.empty() ? Json(nullptr) : Json(words);
}

}  // namespace

Document worked_examples_document(std::span<const WorkedExample> examples) {
  std::size_t claims = 0, held = 0, quoted = 0;
  for (const WorkedExample& e : examples) {
    if (e.entry->provenance == Provenance::quoted) ++quoted;
    if (e.entry->claim == nullptr) continue;
    ++claims;
    if (e.values.flag("holds")) ++held;
  }
  Document document{
      Paragraph{fmt::format("{} worked example{}: {} of {} claims hold when demonstrated; {} quoted, with "
                            "source.",
                            examples.size(), examples.size() == 1 ? "" : "s", held, claims, quoted),
                true}};
  for (const WorkedTheme& theme : worked_themes()) {
    Table t = theme_table(theme, examples);
    if (!t.rows.empty()) document.emplace_back(std::move(t));
  }
  return document;
}

Json worked_examples_to_json(std::span<const WorkedExample> examples, bool details) {
  Json out = Json::object();
  for (const WorkedExample& e : examples) {
    Json& to = out[std::string(e.entry->id)];
    to = values_json(e.values);
    if (!details) continue;
    Json reasons = Json::object();
    for (const WorkedValue& value : e.values.all()) {
      if (value.content.index() == 0) reasons[std::string(value.name)] = value.reason;
    }
    to = {{"values", to},
          {"question", e.entry->question},
          {"provenance", name(e.entry->provenance)},
          {"remark", text_or_null(e.entry->remark)},
          {"source", text_or_null(e.entry->source)},
          {"reasons", reasons}};
  }
  return out;
}

}  // namespace hbmscope
