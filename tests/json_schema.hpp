#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// The part of JSON Schema 2020-12 that docs/schema uses. A keyword it does not know is an exception, so that no rule
/// of a schema goes unchecked. Stricter than the standard in one thing: 1.0 is no integer.
namespace hbmscope::testing {

class JsonSchema {
 public:
  explicit JsonSchema(nlohmann::json schema) : root_(std::move(schema)) {}

  /// What is wrong with `value`, each "/json/pointer: what"; nothing when it is valid.
  [[nodiscard]] std::vector<std::string> errors(const nlohmann::json& value) const {
    std::vector<std::string> found;
    check(root_, value, "", found);
    return found;
  }

 private:
  using Json = nlohmann::json;
  using Errors = std::vector<std::string>;

  void check(const Json& schema, const Json& value, const std::string& at, Errors& errors) const {
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) errors.push_back(at + ": is not allowed");
      return;
    }
    for (const auto& [keyword, rule] : schema.items()) apply(schema, keyword, rule, value, at, errors);
  }

  void apply(const Json& schema, const std::string& keyword, const Json& rule, const Json& value, const std::string& at,
             Errors& errors) const {
    static const std::set<std::string> annotations{"$schema", "title", "description", "$defs"};
    const auto fail = [&](const std::string& what) { errors.push_back(at + ": " + what); };
    if (annotations.count(keyword) > 0) return;
    if (keyword == "$ref") return check(definition(rule), value, at, errors);
    if (keyword == "anyOf") return check_any_of(rule, value, at, errors);
    if (keyword == "type") {
      if (!has_type(rule, value)) fail("must be of type " + rule.dump() + ", is " + value.dump());
    } else if (keyword == "const") {
      if (value != rule) fail("must be " + rule.dump() + ", is " + value.dump());
    } else if (keyword == "enum") {
      if (std::find(rule.begin(), rule.end(), value) == rule.end())
        fail("must be one of " + rule.dump() + ", is " + value.dump());
    } else if (keyword == "minimum") {
      if (value.is_number() && value < rule) fail("must be at least " + rule.dump() + ", is " + value.dump());
    } else if (keyword == "minLength") {
      if (value.is_string() && value.get_ref<const std::string&>().size() < rule.get<std::size_t>())
        fail("must have at least " + rule.dump() + " characters");
    } else if (keyword == "minItems") {
      if (value.is_array() && value.size() < rule.get<std::size_t>())
        fail("must have at least " + rule.dump() + " elements");
    } else if (keyword == "required") {
      for (const Json& key : rule) {
        if (value.is_object() && !value.contains(key.get<std::string>())) fail("lacks " + key.dump());
      }
    } else if (keyword == "items") {
      for (std::size_t i = 0; value.is_array() && i < value.size(); ++i)
        check(rule, value[i], at + "/" + std::to_string(i), errors);
    } else if (keyword == "properties") {
      for (const auto& [key, member] : rule.items()) {
        if (value.is_object() && value.contains(key)) check(member, value[key], at + "/" + key, errors);
      }
    } else if (keyword == "additionalProperties") {
      if (!value.is_object()) return;
      for (const auto& [key, member] : value.items()) {
        if (!schema.contains("properties") || !schema["properties"].contains(key))
          check(rule, member, at + "/" + key, errors);
      }
    } else {
      throw std::runtime_error("the schema uses " + keyword + ", which this validator does not know");
    }
  }

  void check_any_of(const Json& choices, const Json& value, const std::string& at, Errors& errors) const {
    Errors all;
    for (const Json& choice : choices) {
      Errors mine;
      check(choice, value, at, mine);
      if (mine.empty()) return;
      all.insert(all.end(), mine.begin(), mine.end());
    }
    errors.push_back(at + ": meets none of " + std::to_string(choices.size()) + " choices");
    errors.insert(errors.end(), all.begin(), all.end());
  }

  [[nodiscard]] const Json& definition(const Json& reference) const {
    const auto& text = reference.get_ref<const std::string&>();
    if (!text.starts_with("#/$defs/")) throw std::runtime_error("the schema refers to " + text + ", outside its $defs");
    return root_.at(Json::json_pointer(text.substr(1)));
  }

  static bool has_type(const Json& type, const Json& value) {
    if (type.is_array()) {
      return std::any_of(type.begin(), type.end(), [&](const Json& one) { return has_type(one, value); });
    }
    const auto& name = type.get_ref<const std::string&>();
    if (name == "object") return value.is_object();
    if (name == "array") return value.is_array();
    if (name == "string") return value.is_string();
    if (name == "boolean") return value.is_boolean();
    if (name == "null") return value.is_null();
    if (name == "integer") return value.is_number_integer();
    if (name == "number") return value.is_number();
    throw std::runtime_error("the schema knows a type " + name + ", which JSON does not");
  }

  Json root_;
};

}  // namespace hbmscope::testing
