#pragma once
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>

/// Formulas as comments state them: whole numbers, names, + - * /, parentheses, ceil(x), max(x, y) and min(x, y).
namespace hbmscope::testing {

/// Exact, so that a quotient that is not whole shows.
struct Fraction {
  std::int64_t over = 0, under = 1;  ///< in lowest terms, under > 0
  Fraction() = default;
  Fraction(std::int64_t a, std::int64_t b = 1) {
    if (b == 0) throw std::runtime_error("division by zero");
    const std::int64_t common = std::gcd(a, b) * (b < 0 ? -1 : 1);
    over = a / common, under = b / common;
  }
  [[nodiscard]] std::int64_t ceil() const { return over / under + (over % under > 0 ? 1 : 0); }
  friend Fraction operator+(Fraction a, Fraction b) { return {a.over * b.under + b.over * a.under, a.under * b.under}; }
  friend Fraction operator-(Fraction a, Fraction b) { return a + Fraction(-b.over, b.under); }
  friend Fraction operator*(Fraction a, Fraction b) { return {a.over * b.over, a.under * b.under}; }
  friend Fraction operator/(Fraction a, Fraction b) { return {a.over * b.under, a.under * b.over}; }
  friend bool operator<(Fraction a, Fraction b) { return a.over * b.under < b.over * a.under; }
};

using Names = std::map<std::string, std::int64_t, std::less<>>;

class Formula {
 public:
  /// The value of `text`, a whole number; throws std::runtime_error with the reason where it has none.
  static std::int64_t value(std::string_view text, const Names& names) {
    Formula f(text, names);
    const Fraction x = f.sum();
    if (f.peek() != '\0') throw std::runtime_error("\"" + std::string(f.rest_) + "\" is left over");
    if (x.under != 1) throw std::runtime_error("the value is not whole: a ceil() is missing");
    return x.over;
  }

 private:
  Formula(std::string_view text, const Names& names) : rest_(text), names_(&names) {}

  char peek() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool take(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) throw std::runtime_error(std::string("'") + c + "' is missing before \"" + std::string(rest_) + "\"");
  }
  std::string_view take_while(bool (*belongs)(char)) {
    std::size_t n = 0;
    while (n < rest_.size() && belongs(rest_[n])) ++n;
    const std::string_view word = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return word;
  }

  Fraction sum() {
    Fraction x = product();
    while (true) {
      if (take('+')) {
        x = x + product();
      } else if (take('-')) {
        x = x - product();
      } else {
        return x;
      }
    }
  }
  Fraction product() {
    Fraction x = factor();
    while (true) {
      if (take('*')) {
        x = x * factor();
      } else if (take('/')) {
        x = x / factor();
      } else {
        return x;
      }
    }
  }
  Fraction factor() {
    if (take('(')) {
      const Fraction x = sum();
      expect(')');
      return x;
    }
    const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':'; };
    if (digit(peek())) return {std::stoll(std::string(take_while(digit)))};
    const std::string_view word = take_while(letter);
    if (word.empty()) throw std::runtime_error("a number or a name is missing before \"" + std::string(rest_) + "\"");
    if (take('(')) return function(word);
    const auto found = names_->find(word);
    if (found == names_->end()) throw std::runtime_error("\"" + std::string(word) + "\" is no name of a size");
    return {found->second};
  }
  Fraction function(std::string_view name) {
    const Fraction x = sum();
    if (name == "ceil") {
      expect(')');
      return {x.ceil()};
    }
    expect(',');
    const Fraction y = sum();
    expect(')');
    if (name == "max") return std::max(x, y);
    if (name == "min") return std::min(x, y);
    throw std::runtime_error("\"" + std::string(name) + "\" is no function of formulas");
  }

  std::string_view rest_;
  const Names* names_;
};

}  // namespace hbmscope::testing
