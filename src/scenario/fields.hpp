#pragma once
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hbmscope {

/// A JSON value in words, for an error: `the text "abc"`, `the number 1.5`, `null`, `a list`.
std::string describe(const nlohmann::json& value);

/// The members of one JSON object, read with checks. Errors (kind data) name the source, if it has a name, and the
/// member by its JSON pointer (RFC 6901): `my.json: /shape/seqlen_q: must be at least 1, got -3`. A member that is null
/// counts as absent.
class Fields {
 public:
  static constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

  /// `value` must outlive this, and be an object. `pointer` is where it stands: "" for the top level.
  Fields(const nlohmann::json& value, std::string_view source_name, std::string pointer = {});

  /// The member, or nothing if it is absent or null.
  [[nodiscard]] const nlohmann::json* find(const char* key) const;
  [[nodiscard]] const nlohmann::json& require(const char* key) const;

  [[nodiscard]] std::int64_t require_integer(const char* key, std::int64_t min = kMin, std::int64_t max = kMax) const;
  [[nodiscard]] std::optional<std::int64_t> optional_integer(const char* key, std::int64_t min = kMin,
                                                             std::int64_t max = kMax) const;
  [[nodiscard]] double require_real(const char* key) const;
  [[nodiscard]] std::optional<double> optional_real(const char* key) const;
  [[nodiscard]] std::string require_string(const char* key) const;
  [[nodiscard]] std::optional<std::string> optional_string(const char* key) const;
  [[nodiscard]] bool optional_bool(const char* key, bool otherwise) const;
  [[nodiscard]] std::vector<std::string> optional_strings(const char* key) const;
  [[nodiscard]] std::vector<std::int64_t> optional_integers(const char* key, std::int64_t min = kMin,
                                                            std::int64_t max = kMax) const;
  /// The member as an object of its own; absent is an error.
  [[nodiscard]] Fields require_object(const char* key) const;

  /// Refuses every key outside `known`, with the nearest known ones.
  void allow_only(std::span<const std::string_view> known) const;

  /// Throws the Error of one member.
  [[noreturn]] void fail(std::string_view key, const std::string& rest, const std::string& hint = {}) const;

  [[nodiscard]] const nlohmann::json& object() const { return *object_; }
  /// Where the object stands: "" for the top level.
  [[nodiscard]] const std::string& pointer() const { return pointer_; }

 private:
  [[nodiscard]] std::int64_t integer(const nlohmann::json& value, const std::string& key, std::int64_t min,
                                     std::int64_t max) const;
  [[nodiscard]] const nlohmann::json::array_t& list(const nlohmann::json& value, const char* key) const;

  const nlohmann::json* object_;
  std::string_view source_name_;
  std::string pointer_;
};

}  // namespace hbmscope
