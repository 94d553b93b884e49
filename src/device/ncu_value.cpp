#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "core/suggest.hpp"
#include "device/ncu_csv.hpp"

namespace hbmscope {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// digits * 10^exponent
struct Decimal {
  bool negative = false;
  std::string digits;
  int exponent = 0;
};

std::string_view take_digits(std::string_view& rest) {
  std::size_t count = 0;
  while (count < rest.size() && is_digit(rest[count])) ++count;
  const std::string_view digits = rest.substr(0, count);
  rest.remove_prefix(count);
  return digits;
}

/// "1,234,567.89" or "1234567.89", with an exponent or without. Groups must have three digits each: in a locale where
/// ',' is the decimal point, most numbers break that rule instead of being a thousand times too large.
std::optional<Decimal> parse_decimal(std::string_view rest) {
  constexpr std::size_t kLongest = 64;
  if (rest.size() > kLongest) return std::nullopt;
  Decimal number;
  if (rest.starts_with('-')) {
    number.negative = true;
    rest.remove_prefix(1);
  }
  std::string_view group = take_digits(rest);
  if (group.empty() || (rest.starts_with(',') && group.size() > 3)) return std::nullopt;
  number.digits = group;
  while (rest.starts_with(',')) {
    rest.remove_prefix(1);
    group = take_digits(rest);
    if (group.size() != 3) return std::nullopt;
    number.digits += group;
  }
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    const std::string_view decimals = take_digits(rest);
    if (decimals.empty()) return std::nullopt;
    number.digits += decimals;
    number.exponent = -static_cast<int>(decimals.size());
  }
  if (rest.starts_with('e') || rest.starts_with('E')) {
    rest.remove_prefix(1);
    if (rest.starts_with('+')) rest.remove_prefix(1);
    int exponent = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), exponent);
    if (error != std::errc{} || std::abs(exponent) > 99) return std::nullopt;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    number.exponent += exponent;
  }
  return rest.empty() ? std::optional(number) : std::nullopt;
}

/// 10^exponent of a base unit.
struct Scale {
  std::string base;
  int exponent = 0;
};

struct Prefix {
  char letter;
  int exponent;
};
constexpr Prefix kCountPrefixes[]{{'K', 3}, {'k', 3}, {'M', 6}, {'G', 9}, {'T', 12}};
constexpr Prefix kTimePrefixes[]{{'n', -9}, {'u', -6}, {'m', -3}};

std::optional<Scale> time_scale(std::string_view unit) {
  for (const std::string_view second : {"second", "s"}) {
    if (unit == second) return Scale{"second", 0};
    for (const Prefix& prefix : kTimePrefixes) {
      if (unit.starts_with(prefix.letter) && unit.substr(1) == second) return Scale{"second", prefix.exponent};
    }
  }
  return std::nullopt;
}

std::optional<Scale> simple_scale(std::string_view unit) {
  if (const std::optional<Scale> seconds = time_scale(unit)) return seconds;
  for (const std::string_view base :
       {"byte", "sector", "inst", "cycle", "hz", "warp", "thread", "block", "request", "register", "%", ""}) {
    if (unit == base) return Scale{std::string(base), 0};
    if (base.size() < 2) continue;
    for (const Prefix& prefix : kCountPrefixes) {
      if (unit.starts_with(prefix.letter) && unit.substr(1) == base) return Scale{std::string(base), prefix.exponent};
    }
  }
  return std::nullopt;
}

/// ncu's prefixes are powers of 1000, also of bytes. An unknown unit is a base unit.
Scale scale_of(std::string_view unit) {
  const std::size_t slash = unit.find('/');
  const std::optional<Scale> above = simple_scale(unit.substr(0, slash));
  if (above && slash == std::string_view::npos) return *above;
  const std::optional<Scale> below =
      slash == std::string_view::npos ? std::nullopt : simple_scale(unit.substr(slash + 1));
  if (!above || !below) return {std::string(unit), 0};
  return {above->base + "/" + below->base, above->exponent - below->exponent};
}

std::optional<std::int64_t> whole(Decimal number) {
  while (number.digits.size() > 1 && number.digits.ends_with('0')) {
    number.digits.pop_back();
    ++number.exponent;
  }
  if (number.digits == "0") return 0;
  if (number.exponent < 0 || number.exponent > 18) return std::nullopt;
  number.digits.append(static_cast<std::size_t>(number.exponent), '0');
  std::int64_t value = 0;
  const std::string text = (number.negative ? "-" : "") + number.digits;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

bool contains_word(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

void complain(NcuValue& value, std::string_view number) {
  value.trouble = number.empty() ? "has no value: the cell is empty" : "has no value: " + in_quotes(number);
  if (number.empty() || contains_word(number, "nan")) {
    value.hint = "the counter was not read: profile again, with fewer metrics at a time";
  } else if (contains_word(number, "n/a")) {
    value.hint = "this GPU does not have the metric or cannot count it: ncu --query-metrics lists those it has";
  } else {
    value.trouble = "is no number: " + in_quotes(number);
    value.hint = "numbers have ',' between groups of three digits and '.' before decimals: run ncu with LC_ALL=C";
  }
}

}  // namespace

NcuValue parse_ncu_value(std::string_view number, std::string_view unit) {
  while (number.starts_with(' ')) number.remove_prefix(1);
  while (number.ends_with(' ')) number.remove_suffix(1);
  NcuValue value;
  const Scale scale = scale_of(unit);
  value.unit = scale.base;
  std::optional<Decimal> decimal = parse_decimal(number);
  if (!decimal) {
    complain(value, number);
    return value;
  }
  decimal->exponent += scale.exponent;
  const std::string exponent = "e" + std::to_string(decimal->exponent);
  const auto real = [&](const std::string& digits) {
    const std::string text = digits + exponent;
    double result = 0;
    std::from_chars(text.data(), text.data() + text.size(), result);
    return result;
  };
  value.value = (decimal->negative ? -1 : 1) * real(decimal->digits);
  value.step = real("1");
  value.exact = whole(*decimal);
  return value;
}

}  // namespace hbmscope
