#pragma once
#include <regex.h>

#include <string>
#include <string_view>

namespace hbmscope {

/// A POSIX extended regular expression of --kernel. Matching takes time in proportion to the name: what would not,
/// back-references and large counts, is refused, as is what means something else in other dialects (\d, (?:...)).
class NamePattern {
 public:
  static constexpr std::size_t kMaxLength = 256;      ///< bytes of an expression
  static constexpr std::size_t kMostMatched = 1'024;  ///< bytes of a name that are looked at
  static constexpr int kMostCopies = 256;             ///< all counts in {} multiplied

  /// Throws an Error (kind usage) for a text that is no such expression.
  explicit NamePattern(const std::string& expression);
  ~NamePattern();
  NamePattern(const NamePattern&) = delete;
  NamePattern& operator=(const NamePattern&) = delete;

  /// Does it stand anywhere in the name?
  [[nodiscard]] bool is_in(std::string_view name) const;

 private:
  regex_t compiled_{};
};

}  // namespace hbmscope
