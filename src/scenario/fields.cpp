#include "scenario/fields.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/suggest.hpp"

namespace hbmscope {

using nlohmann::json;

namespace {

std::string pointer_token(std::string_view key) {
  std::string token;
  for (const char c : key) {
    if (c == '~' || c == '/') {
      token += c == '~' ? "~0" : "~1";
    } else {
      token += c;
    }
  }
  const std::string shown = in_quotes(token);
  return shown.substr(1, shown.size() - 2);
}

/// How to write a whole number between these two.
std::string whole_number_hint(std::int64_t min, std::int64_t max) {
  std::string hint = "write a whole number";
  if (min != Fields::kMin) hint += " from " + std::to_string(min) + (max == Fields::kMax ? " on" : "");
  if (max != Fields::kMax) hint += (min == Fields::kMin ? " up to " : " to ") + std::to_string(max);
  return hint + ", without quotes";
}

}  // namespace

std::string describe(const nlohmann::json& value) {
  switch (value.type()) {
    case json::value_t::string:
      return "the text " + in_quotes(value.get_ref<const std::string&>());
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
    case json::value_t::number_float:
      return "the number " + value.dump();
    default:
      return value.dump();
  }
}

Fields::Fields(const nlohmann::json& value, std::string_view source_name, std::string pointer)
    : object_(&value), source_name_(source_name), pointer_(std::move(pointer)) {
  if (value.is_object()) return;
  const std::string where = pointer_.empty() ? "the top level" : pointer_ + ":";
  const std::string prefix = source_name.empty() ? "" : std::string(source_name) + ": ";
  throw Error(ErrorKind::data, prefix + where + " must be an object, got " + describe(value),
              "write {\"key\": value, ...}");
}

void Fields::fail(std::string_view key, const std::string& rest, const std::string& hint) const {
  const std::string prefix = source_name_.empty() ? "" : std::string(source_name_) + ": ";
  throw Error(ErrorKind::data, prefix + pointer_ + "/" + pointer_token(key) + ": " + rest, hint);
}

const nlohmann::json* Fields::find(const char* key) const {
  const auto member = object_->find(key);
  return member == object_->end() || member->is_null() ? nullptr : &*member;
}

const nlohmann::json& Fields::require(const char* key) const {
  if (const json* value = find(key)) return *value;
  if (object_->contains(key)) fail(key, "must not be null", "give it a value");
  fail(key, "is missing", "add " + in_quotes(key) + " with its value");
}

std::int64_t Fields::integer(const nlohmann::json& value, const std::string& key, std::int64_t min,
                             std::int64_t max) const {
  const std::string whole = whole_number_hint(min, max);
  std::int64_t number = 0;
  if (value.is_number_unsigned()) {
    const auto wide = value.get<std::uint64_t>();
    if (wide > static_cast<std::uint64_t>(kMax)) fail(key, "does not fit 64 bits: " + value.dump(), whole);
    number = static_cast<std::int64_t>(wide);
  } else if (value.is_number_integer()) {
    number = value.get<std::int64_t>();
  } else if (value.is_number_float()) {
    constexpr double kExact = 9007199254740992.0;  // 2^53: from here on a double no longer holds every whole number
    const double real = value.get<double>();
    if (real >= 0x1p63 || real < -0x1p63) fail(key, "does not fit 64 bits: " + value.dump(), whole);
    if (real > kExact || real < -kExact)
      fail(key, "is too large to be exact as " + value.dump(),
           "write all of its digits, without a point or an exponent");
    number = static_cast<std::int64_t>(real);
    if (static_cast<double>(number) < real || static_cast<double>(number) > real)
      fail(key, "must be a whole number, got " + value.dump(), whole);
  } else {
    fail(key, "must be a whole number, got " + describe(value), whole);
  }
  if (number < min) fail(key, "must be at least " + std::to_string(min) + ", got " + std::to_string(number), whole);
  if (number > max) fail(key, "must be at most " + std::to_string(max) + ", got " + std::to_string(number), whole);
  return number;
}

const nlohmann::json::array_t& Fields::list(const nlohmann::json& value, const char* key) const {
  if (!value.is_array()) fail(key, "must be a list, got " + describe(value), "write [value, value, ...]");
  return value.get_ref<const json::array_t&>();
}

std::int64_t Fields::require_integer(const char* key, std::int64_t min, std::int64_t max) const {
  return integer(require(key), key, min, max);
}

std::optional<std::int64_t> Fields::optional_integer(const char* key, std::int64_t min, std::int64_t max) const {
  const json* value = find(key);
  return value == nullptr ? std::nullopt : std::optional(integer(*value, key, min, max));
}

double Fields::require_real(const char* key) const {
  const json& value = require(key);
  if (!value.is_number()) fail(key, "must be a number, got " + describe(value), "write it without quotes, such as 0.3");
  return value.get<double>();
}

std::optional<double> Fields::optional_real(const char* key) const {
  return find(key) == nullptr ? std::nullopt : std::optional(require_real(key));
}

std::string Fields::require_string(const char* key) const {
  const json& value = require(key);
  if (!value.is_string()) fail(key, "must be a text, got " + describe(value), "write it in double quotes");
  std::string text = value.get<std::string>();
  // Texts end up in tables and on terminals, which a control character would spoil or steer.
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), is_control)) {
    fail(key, "must not contain control characters or line breaks", "keep it to one line of plain text");
  }
  constexpr std::size_t kMaxText = 4000;
  if (text.size() > kMaxText)
    fail(key, "is a text of " + std::to_string(text.size()) + " bytes, more than " + std::to_string(kMaxText),
         "shorten it");
  return text;
}

std::optional<std::string> Fields::optional_string(const char* key) const {
  return find(key) == nullptr ? std::nullopt : std::optional(require_string(key));
}

bool Fields::optional_bool(const char* key, bool otherwise) const {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) fail(key, "must be true or false, got " + describe(*value), "write it without quotes");
  return value->get<bool>();
}

std::vector<std::string> Fields::optional_strings(const char* key) const {
  std::vector<std::string> texts;
  const json* value = find(key);
  if (value == nullptr) return texts;
  for (const json& element : list(*value, key)) {
    if (!element.is_string())
      fail(key, "must be a list of texts, but one element is " + describe(element), "write each in double quotes");
    texts.push_back(element.get<std::string>());
  }
  return texts;
}

std::vector<std::int64_t> Fields::optional_integers(const char* key, std::int64_t min, std::int64_t max) const {
  std::vector<std::int64_t> numbers;
  const json* value = find(key);
  if (value == nullptr) return numbers;
  const Fields in_list(*object_, source_name_, pointer_ + "/" + pointer_token(key));  // an error names the element
  for (const json& element : list(*value, key)) {
    numbers.push_back(in_list.integer(element, std::to_string(numbers.size()), min, max));
  }
  return numbers;
}

Fields Fields::require_object(const char* key) const {
  return {require(key), source_name_, pointer_ + "/" + pointer_token(key)};
}

void Fields::allow_only(std::span<const std::string_view> known) const {
  for (const auto& [key, value] : object_->get_ref<const json::object_t&>()) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(key, "is not a known key", did_you_mean(key, known));
  }
}

}  // namespace hbmscope
