#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace hbmscope {

/// 64 bits that stand for a text: FNV-1a (Fowler, Noll and Vo), mixed once more so that near texts differ everywhere.
/// Among a million configurations two share one with a probability below 10^-7. No protection against somebody who
/// looks for two that do.
class Fingerprint {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0xff);  // in no UTF-8: "ab" and "c" is not "a" and "bc"
  }
  [[nodiscard]] std::uint64_t bits() const {
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  /// Sixteen hex digits.
  [[nodiscard]] std::string hex() const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text(16, '0');
    std::uint64_t rest = bits();
    for (std::size_t i = text.size(); i-- > 0; rest >>= 4) text[i] = kDigits[rest & 15];
    return text;
  }

 private:
  void add_byte(unsigned char byte) { state_ = (state_ ^ byte) * 0x100000001b3ULL; }

  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace hbmscope
