#include "report/batch_writer.hpp"

#include <charconv>

#include "report/json_dump.hpp"

namespace hbmscope {
namespace {

using nlohmann::json;

template <class Integer>
void append_integer(std::string& to, Integer value) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  to.append(digits, end);
}

void append_text(std::string& to, std::string_view text) {
  const bool plain = [&] {
    for (const char c : text) {
      if (c < 0x20 || c > 0x7e || c == '"' || c == '\\') return false;
    }
    return true;
  }();
  if (!plain) {
    to += json_dump(json(text));
    return;
  }
  to += '"';
  to += text;
  to += '"';
}

void append_value(std::string& to, const json& value);

/// An object or a list: `{"key": value, ...}`.
void append_members(std::string& to, const json& value) {
  const char* separator = "";
  if (value.is_object()) {
    to += '{';
    for (const auto& [key, member] : value.get_ref<const json::object_t&>()) {
      to += separator;
      append_text(to, key);
      to += ": ";
      append_value(to, member);
      separator = ", ";
    }
    to += '}';
    return;
  }
  to += '[';
  for (const json& element : value.get_ref<const json::array_t&>()) {
    to += separator;
    append_value(to, element);
    separator = ", ";
  }
  to += ']';
}

void append_value(std::string& to, const json& value) {
  switch (value.type()) {
    case json::value_t::object:
    case json::value_t::array:
      return append_members(to, value);
    case json::value_t::string:
      return append_text(to, value.get_ref<const std::string&>());
    case json::value_t::number_integer:
      return append_integer(to, value.get<std::int64_t>());
    case json::value_t::number_unsigned:
      return append_integer(to, value.get<std::uint64_t>());
    default:
      to += json_dump(value);
  }
}

void append_traffic(std::string& to, const Traffic& traffic) {
  const char* separator = "";
  to += '{';
  for (const TensorInfo& tensor : kTensors) {
    const ReadWrite& bytes = traffic[tensor.tensor];
    if (bytes == ReadWrite{}) continue;
    to += separator;
    to += '"';
    to += tensor.name;
    to += "\": {\"read\": ";
    append_integer(to, bytes.read.value());
    to += ", \"write\": ";
    append_integer(to, bytes.write.value());
    to += '}';
    separator = ", ";
  }
  to += '}';
}

}  // namespace

void append_batch_line(std::string& to, const json& shape, std::string_view algorithm, const json& plan,
                       const BatchFigures& figures) {
  to += "{\"shape\": ";
  append_value(to, shape);
  to += ", \"algorithm\": ";
  append_text(to, algorithm);
  to += ", \"plan\": ";
  append_value(to, plan);
  to += ", \"traffic\": ";
  append_traffic(to, figures.traffic);
  to += ", \"live_pairs\": ";
  append_integer(to, figures.live_pairs.value());
  to += ", \"compulsory\": ";
  append_integer(to, figures.compulsory.value());
  to += "}\n";
}

void append_batch_error(std::string& to, std::string_view message, std::string_view hint, std::int64_t line) {
  std::string sentence(message);
  if (!hint.empty()) sentence.append("; ").append(hint);
  to += "{\"error\": ";
  append_text(to, sentence);
  to += ", \"line\": ";
  append_integer(to, line);
  to += "}\n";
}

}  // namespace hbmscope
