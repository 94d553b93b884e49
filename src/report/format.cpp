#include "report/format.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "report/tick_format.hpp"

namespace hbmscope::text {
namespace {

/// 8192 -> "8,192", for the digits before a decimal point.
std::string grouped(std::string digits) {
  const std::size_t start = digits.starts_with('-') ? 1 : 0;
  std::size_t end = digits.find('.');
  if (end == std::string::npos) end = digits.size();
  for (std::size_t at = end; at > start + 3;) digits.insert(at -= 3, ",");
  return digits;
}

/// Decimals that leave about three digits: 8.39, 62.9, 545.3.
int decimals_for(double value) {
  return std::abs(value) < 10 ? 2 : 1;
}

struct Scaled {
  double value;
  std::string_view prefix;
};

template <std::size_t N>
Scaled scale(double value, double step, const std::array<std::string_view, N>& prefixes) {
  std::size_t i = 0;
  // 999.95 would round to 1000.0 of the smaller unit.
  while (std::abs(value) >= step * 0.99995 && i + 1 < N) {
    value /= step;
    ++i;
  }
  return {value, prefixes[i]};
}

constexpr std::array<std::string_view, 7> kDecimal{"", "k", "M", "G", "T", "P", "E"};
constexpr std::array<std::string_view, 7> kBinary{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

std::string with_unit(double value, std::string_view unit) {
  const Scaled s = scale(value, 1000, kDecimal);
  return fmt::format("{} {}{}", fmt::format("{:.{}f}", s.value, decimals_for(s.value)), s.prefix, unit);
}

/// Without trailing zeros of a fraction.
std::string trimmed(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') == std::string::npos) return text;
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::string integer(std::int64_t value) {
  return grouped(fmt::format("{}", value));
}

std::string bytes(Bytes value) {
  if (std::abs(value.as_double()) < 1000) return fmt::format("{} B", value.value());
  return with_unit(value.as_double(), "B");
}

std::string binary_bytes(Bytes value) {
  const Scaled s = scale(value.as_double(), 1024, kBinary);
  return fmt::format("{} {}B", trimmed(s.value, s.value < 100 ? 2 : 1), s.prefix);
}

std::string flop(Flop value) {
  return with_unit(value.as_double(), "FLOP");
}
std::string flop_rate(FlopPerSecond value) {
  return with_unit(value.value, "FLOP/s");
}
std::string byte_rate(BytesPerSecond value) {
  return with_unit(value.value, "B/s");
}

std::string roof_rate(const GpuRoof& roof) {
  if (roof.unit == RoofUnit::byte_per_s) return byte_rate({roof.rate});
  return roof.unit == RoofUnit::flop_per_s ? flop_rate({roof.rate}) : with_unit(roof.rate, "exp/s");
}

std::string intensity(FlopPerByte value) {
  return value.value < 10 ? fmt::format("{:.2f}", value.value) : grouped(fmt::format("{:.0f}", value.value));
}

std::string seconds(Seconds value) {
  if (value.value >= 1) return grouped(fmt::format("{:.{}f}", value.value, decimals_for(value.value))) + " s";
  const std::array<std::string_view, 3> units{"ms", "us", "ns"};
  double scaled = value.value;
  for (const std::string_view unit : units) {
    scaled *= 1000;
    if (scaled >= 0.99995 || unit == units.back()) return fmt::format("{:.{}f} {}", scaled, decimals_for(scaled), unit);
  }
  return {};
}

std::string factor(double value) {
  // Plain digits as long as two decimals say something of it.
  const double magnitude = std::abs(value);
  const bool plain = magnitude == 0 || (magnitude >= 0.005 && magnitude < 1e6);
  return (plain ? fmt::format("{:.2f}", value) : scientific(value)) + "x";
}

std::string ratio(double value) {
  if (value >= 1000) return grouped(fmt::format("{:.0f}", value));
  return fmt::format("{:.{}f}", value, decimals_for(value));
}

std::string significant(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{}", value);
  const int before = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  return grouped(trimmed(value, std::max(0, digits - before)));
}

std::string count(double value) {
  if (std::abs(value) < 1e4) return grouped(trimmed(value, 1));
  const Scaled s = scale(value, 1000, kDecimal);
  return fmt::format("{:.{}f} {}", s.value, decimals_for(s.value), s.prefix);
}

std::string scientific(double value) {
  return fmt::format("{:.1e}", value);
}

std::string percent(double fraction) {
  return fmt::format("{:.1f} %", fraction * 100);
}

std::string tick(double value, std::string_view unit) {
  std::string number;
  std::string_view prefix;
  const double magnitude = std::abs(value);
  if (!unit.empty() && magnitude >= 1 && magnitude < 1e21) {
    const Scaled s = scale(value, 1000, kDecimal);
    number = trimmed(s.value, 2);
    prefix = s.prefix;
  } else if (magnitude > 0 && (magnitude < 1e-3 || magnitude >= 1e6)) {
    number = fmt::format("{:.0e}", value);
  } else {
    number = grouped(trimmed(value, 6));
  }
  return unit.empty() ? number : fmt::format("{} {}{}", number, prefix, unit);
}

std::string length_tick(double value) {
  constexpr std::array<std::string_view, 4> kPrefixes{"", "k", "M", "G"};
  const Scaled s = value < 1024 ? Scaled{value, ""} : scale(value, 1024, kPrefixes);
  return trimmed(s.value, 1) + std::string(s.prefix);
}

std::string binary_tick(double bytes) {
  const Scaled s = scale(bytes, 1024, kBinary);
  return fmt::format("{} {}B", trimmed(s.value, 1), s.prefix);
}

}  // namespace hbmscope::text
