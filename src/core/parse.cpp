#include "core/parse.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "core/suggest.hpp"

namespace hbmscope {
namespace {

struct Unit {
  std::string_view suffix;
  std::uint64_t factor;
};

constexpr std::uint64_t kKi = 1024;
constexpr std::uint64_t kK = 1000;
constexpr std::array<Unit, 7> kLengthUnits{
    {{"", 1}, {"k", kKi}, {"K", kKi}, {"m", kKi* kKi}, {"M", kKi* kKi}, {"g", kKi* kKi* kKi}, {"G", kKi* kKi* kKi}}};
constexpr std::array<Unit, 10> kByteUnits{{{"", 1},
                                           {"B", 1},
                                           {"kB", kK},
                                           {"MB", kK* kK},
                                           {"GB", kK* kK* kK},
                                           {"TB", kK* kK* kK* kK},
                                           {"KiB", kKi},
                                           {"MiB", kKi* kKi},
                                           {"GiB", kKi* kKi* kKi},
                                           {"TiB", kKi* kKi* kKi* kKi}}};

__extension__ using Wide = unsigned __int128;

/// With this many decimals the scaled fraction still fits 128 bits: 10^24 * 2^40 < 2^127.
constexpr std::size_t kMaxDecimals = 24;

/// What is parsed: the words for its errors.
struct Quantity {
  std::string_view option;
  std::string_view text;
  std::string_view noun;     ///< "a length"
  std::string_view example;  ///< how to write one

  [[noreturn]] void fail(const std::string& rest, std::string hint = {}) const {
    if (hint.empty()) hint = example;
    throw Error(ErrorKind::usage, std::string(option) + ": " + rest, std::move(hint));
  }
  [[noreturn]] void fail_not_a_number() const {
    if (text.empty()) fail("needs " + std::string(noun) + ", but the text is empty");
    fail("needs " + std::string(noun) + ", got " + in_quotes(text), hint_about_commas());
  }
  [[noreturn]] void fail_too_large() const { fail(in_quotes(text) + " does not fit 64 bits", "take a smaller number"); }

 private:
  [[nodiscard]] std::string hint_about_commas() const {
    if (text.find(',') == std::string_view::npos) return {};
    return "the decimal point is '.', and digits are not grouped";
  }
};

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view& rest) {
  std::size_t count = 0;
  while (count < rest.size() && is_digit(rest[count])) ++count;
  const std::string_view digits = rest.substr(0, count);
  rest.remove_prefix(count);
  return digits;
}

std::uint64_t factor_of(const Quantity& quantity, std::string_view suffix, std::span<const Unit> units) {
  std::vector<std::string_view> names;
  for (const Unit& unit : units) {
    if (unit.suffix == suffix) return unit.factor;
    if (!unit.suffix.empty()) names.push_back(unit.suffix);
  }
  if (suffix.find_first_of(",.") != std::string_view::npos) quantity.fail_not_a_number();
  quantity.fail("does not know the unit " + in_quotes(suffix) + " of " + in_quotes(quantity.text),
                did_you_mean(suffix, names));
}

/// digits[.digits][unit], in exact integer arithmetic.
std::int64_t parse_scaled(const Quantity& quantity, std::span<const Unit> units) {
  std::string_view rest = quantity.text;
  if (rest.size() > 1 && rest[0] == '-' && is_digit(rest[1]))
    quantity.fail("must not be negative, got " + in_quotes(quantity.text));
  const std::string_view whole_digits = take_digits(rest);
  std::string_view decimals;
  if (rest.size() > 1 && rest[0] == '.' && is_digit(rest[1])) {
    rest.remove_prefix(1);
    decimals = take_digits(rest);
  }
  if (whole_digits.empty()) quantity.fail_not_a_number();
  const bool has_space = !rest.empty() && rest[0] == ' ';
  while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
  if (has_space && rest.empty()) quantity.fail_not_a_number();
  const std::uint64_t factor = factor_of(quantity, rest, units);

  std::uint64_t whole = 0;
  const auto [end, error] = std::from_chars(whole_digits.data(), whole_digits.data() + whole_digits.size(), whole);
  if (error != std::errc{}) quantity.fail_too_large();
  while (!decimals.empty() && decimals.back() == '0') decimals.remove_suffix(1);
  if (decimals.size() > kMaxDecimals)
    quantity.fail(in_quotes(quantity.text) + " has too many decimals to be a whole number");
  Wide fraction = 0;
  Wide power = 1;
  for (const char digit : decimals) {
    fraction = fraction * 10 + static_cast<unsigned>(digit - '0');
    power *= 10;
  }
  fraction *= factor;
  if (fraction % power != 0) quantity.fail("must be a whole number, but " + in_quotes(quantity.text) + " is not one");
  const Wide total = static_cast<Wide>(whole) * factor + fraction / power;
  if (total > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) quantity.fail_too_large();
  return static_cast<std::int64_t>(total);
}

}  // namespace

std::int64_t parse_integer(std::string_view text, std::string_view option) {
  const Quantity quantity{option, text, "a whole number", "write it in plain digits, such as 128"};
  std::int64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error == std::errc::result_out_of_range && end == last) quantity.fail_too_large();
  if (error != std::errc{} || end != last) quantity.fail_not_a_number();
  return value;
}

std::int64_t parse_length(std::string_view text, std::string_view option) {
  return parse_scaled({option, text, "a length", "write 8192 or 8k (k = 1024, M = 1024 k)"}, kLengthUnits);
}

std::int64_t parse_count(std::string_view text, std::string_view option, std::int64_t least) {
  const std::string example = "write a whole number from " + std::to_string(least) + " on";
  return parse_scaled({option, text, "a whole number", example}, kLengthUnits);
}

Bytes parse_bytes(std::string_view text, std::string_view option) {
  return Bytes(parse_scaled(
      {option, text, "a number of bytes", "write 232448, 227KiB (1 KiB = 1024 B) or 30MB (1 MB = 1000000 B)"},
      kByteUnits));
}

double parse_real(std::string_view text, std::string_view option) {
  const Quantity quantity{option, text, "a number", "write it with a decimal point, such as 0.3"};
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error == std::errc::result_out_of_range && end == last) {
    quantity.fail(in_quotes(text) + " is beyond the range of a double", "numbers go from about 1e-307 to 1e308");
  }
  if (error != std::errc{} || end != last) quantity.fail_not_a_number();
  if (!std::isfinite(value)) quantity.fail("needs a finite number, got " + in_quotes(text));
  return value;
}

}  // namespace hbmscope
