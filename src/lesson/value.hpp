#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lesson/quantity.hpp"

namespace hbmscope::lesson {

/// A place in a result: an object, a list, or something in one that is neither number nor text.
struct JsonPlace {
  const nlohmann::ordered_json* json = nullptr;
  std::vector<std::string> keys;  ///< by which it was reached; they may name the unit of what lies within
  std::string null_reason = {};   ///< of a null, if the result tells why it is one
};

/// What a name of a lesson can stand for.
using Value = std::variant<Quantity, std::string, JsonPlace>;

/// The names that an expression may use.
class Names {
 public:
  virtual ~Names() = default;
  /// Throws an Error (kind data) where there is no such name, DefinitionFailed where its definition is wrong.
  virtual const Value& find(std::string_view name) = 0;
};

/// A name is used whose definition is wrong. That is told once, at the definition.
struct DefinitionFailed {};

/// Evaluates an expression: numbers with units, names, paths into results, + - * / ^, functions.
/// Throws an Error (kind data) that says what is wrong, and DefinitionFailed.
Value evaluate(std::string_view expression, Names& names);

/// Is this the name of a function or a unit, which no definition may take?
bool is_reserved(std::string_view name);

/// "an object", "a list", "a text", "in B", "null (the CPU engine did not run)"
std::string kind_of(const Value& value);
/// What to write where such a value cannot stand.
std::string hint_instead_of(const Value& value);

constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace hbmscope::lesson
