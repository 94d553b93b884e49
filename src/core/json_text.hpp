#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace hbmscope {

/// Appends JSON to a text straight away, without a tree in between: rows are written by the hundred thousand. Commas
/// set themselves; that every object and list ends is the caller's part. Without blanks or line ends.
class JsonText {
 public:
  explicit JsonText(std::string& to) : to_(&to) {}

  void begin_object() { open('{'); }
  void end_object() { *to_ += '}'; }
  void begin_list() { open('['); }
  void end_list() { *to_ += ']'; }
  /// The name of the member that is written next: one that needs no escapes.
  void key(std::string_view name);

  void value(std::nullptr_t);
  void value(bool truth);
  void value(std::int64_t number);
  /// The shortest text that reads back as the same number; null for what JSON has no number for.
  void value(double number);
  /// Bytes that are no UTF-8 become U+FFFD.
  void value(std::string_view text);
  template <class T>
  requires std::is_enum_v<T>
  void value(T) = delete;
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  template <class T>
  void value(const std::optional<T>& maybe) {
    if (maybe) {
      value(*maybe);
    } else {
      value(nullptr);
    }
  }
  template <class T>
  void member(std::string_view name, const T& its_value) {
    key(name);
    value(its_value);
  }
  /// JSON as it stands: a value that is known to be one.
  void raw(std::string_view json);

 private:
  void separate();
  void open(char bracket);
  void quote(std::string_view text);

  std::string* to_;
};

}  // namespace hbmscope
