#include "lesson/pattern.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "core/suggest.hpp"
#include "lesson/fail.hpp"
#include "report/format.hpp"

namespace hbmscope::lesson {
namespace {

constexpr int kMostDecimals = 30;

[[noreturn]] void fail_pattern(std::string_view pattern) {
  fail("does not know the pattern " + in_quotes(pattern),
       "write it as 0, 0.00, 0,000, 0.0 MB, 0x, 0 %, 0.0e0, 0k, auto or text");
}

struct Pattern {
  bool grouped = false;
  bool exponent = false;
  int decimals = 0;
  std::string_view unit;  ///< with the blank before it, if there is one
};

bool take(std::string_view& rest, std::string_view start) {
  if (!rest.starts_with(start)) return false;
  rest.remove_prefix(start.size());
  return true;
}

Pattern parse(std::string_view text) {
  Pattern p;
  std::string_view rest = text;
  if (!take(rest, "0")) fail_pattern(text);
  p.grouped = take(rest, ",000");
  if (take(rest, ".")) {
    while (take(rest, "0")) ++p.decimals;
    if (p.decimals == 0 || p.decimals > kMostDecimals) fail_pattern(text);
  }
  p.exponent = take(rest, "e0");
  p.unit = rest;
  return p;
}

/// What a pattern's unit divides a value by; the value has to have its dimension.
std::optional<Unit> unit_of_pattern(std::string_view name) {
  using Named = std::pair<std::string_view, std::int64_t>;
  constexpr std::array<Named, 9> kPlain{{{"", 1},
                                         {"x", 1},
                                         {"k", 1 << 10},
                                         {"M", 1 << 20},
                                         {"G", 1 << 30},
                                         {"thousand", 1'000},
                                         {"million", 1'000'000},
                                         {"billion", 1'000'000'000},
                                         {"trillion", 1'000'000'000'000}}};
  for (const auto& [known, size] : kPlain) {
    if (name == known) return Unit{{}, Quantity::whole(size)};
  }
  return find_unit(name);
}

[[noreturn]] void fail_unit(const Quantity& value, std::string_view unit, Dimension wanted) {
  const std::string shown = unit.empty() ? "a plain number" : in_quotes(unit);
  std::string hint = "take a unit of " + name(value.dimension()) + ", or compute something else";
  if (value.dimension().plain()) hint = "give the value its unit: multiply it by 1 " + name(wanted);
  if (wanted.plain()) hint = "write the unit in the pattern, such as 0.0 " + name(value.dimension());
  fail("the value is " + std::string(value.dimension().plain() ? "" : "in ") + name(value.dimension()) +
           ", and the pattern shows " + shown,
       hint);
}

std::string grouped(std::string digits) {
  const std::size_t start = digits.starts_with('-') ? 1 : 0;
  const std::size_t end = std::min(digits.find('.'), digits.size());
  for (std::size_t at = end; at > start + 3;) digits.insert(at -= 3, ",");
  return digits;
}

/// `value` in the pattern's unit.
std::string digits_of(const Quantity& value, const Pattern& p) {
  std::string digits;
  if (p.exponent) {
    digits = fmt::format("{:.{}e}", value.real(), p.decimals);
  } else if (value.exact()) {
    digits = fmt::format("{}", *value.exact());
    if (p.decimals > 0) digits += "." + std::string(static_cast<std::size_t>(p.decimals), '0');
  } else {
    if (std::abs(value.real()) >= kTwo53) {
      fail("the value is known to some 16 digits, and the pattern shows more",
           "take a larger unit, or a pattern such as 0.0e0");
    }
    digits = fmt::format("{:.{}f}", value.real(), p.decimals);
  }
  if (value.real() != 0 && digits.find_first_of("123456789") == std::string::npos) {
    throw Vanished(ErrorKind::data,
                   "the value is not 0, and would be written as " + in_quotes(digits + std::string(p.unit)),
                   p.unit.empty() ? "write more decimals" : "take a smaller unit, or more decimals");
  }
  return p.grouped ? grouped(std::move(digits)) : digits;
}

std::string number_as(const Quantity& value, std::string_view pattern) {
  const Pattern p = parse(pattern);
  std::string_view unit_name = p.unit;
  take(unit_name, " ");
  if (unit_name == "%") {
    if (!value.dimension().plain()) fail_unit(value, unit_name, {});
    return digits_of(value * Quantity::whole(100), p) + std::string(p.unit);
  }
  const auto unit = unit_of_pattern(unit_name);
  if (!unit) fail_pattern(pattern);
  if (unit->dimension != value.dimension()) fail_unit(value, unit_name, unit->dimension);
  return digits_of(value.as({}) / unit->size.as({}), p) + std::string(p.unit);
}

std::int64_t nearest_whole(const Quantity& value) {
  if (value.exact()) return *value.exact();
  if (std::abs(value.real()) >= 9.2e18) fail("the number does not fit 64 bits", "take a pattern such as 0.0e0");
  return static_cast<std::int64_t>(std::llround(value.real()));
}

std::string automatic(const Quantity& value, bool binary) {
  const Dimension d = value.dimension();
  if (binary) {
    if (d != Dimension{1, 0, 0}) fail_unit(value, "KiB", {1, 0, 0});
    return text::binary_bytes(Bytes(nearest_whole(value)));
  }
  if (d == Dimension{1, 0, 0}) return text::bytes(Bytes(nearest_whole(value)));
  if (d == Dimension{0, 1, 0}) return text::flop(Flop(nearest_whole(value)));
  if (d == Dimension{0, 0, 1}) return text::seconds({value.real()});
  if (d == Dimension{1, 0, -1}) return text::byte_rate({value.real()});
  if (d == Dimension{0, 1, -1}) return text::flop_rate({value.real()});
  if (d == Dimension{-1, 1, 0}) return text::intensity({value.real()}) + " FLOP/B";
  if (!d.plain()) fail("auto does not know how to write " + name(d), "write a pattern with its unit");
  return value.exact() ? text::integer(*value.exact()) : text::significant(value.real(), 4);
}

}  // namespace

std::string written(const Value& value, std::string_view pattern) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (pattern != "text") fail("the value is a text, and the pattern shows a number", "write it as text");
    return *text;
  }
  const auto* number = std::get_if<Quantity>(&value);
  if (number == nullptr) fail("the value is " + kind_of(value), hint_instead_of(value));
  if (pattern == "text")
    fail("the value is a number, and the pattern shows a text", "write it as auto, or as a pattern such as 0.0 MB");
  if (pattern == "auto" || pattern == "auto binary") return automatic(*number, pattern != "auto");
  return number_as(*number, pattern);
}

}  // namespace hbmscope::lesson
