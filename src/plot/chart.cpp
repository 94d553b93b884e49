#include "plot/chart.hpp"

#include <fmt/format.h>

#include "report/tick_format.hpp"

namespace hbmscope::plot {

double as_double(const Number& number) {
  if (const auto* whole = std::get_if<std::int64_t>(&number)) return static_cast<double>(*whole);
  return std::get<double>(number);
}

std::string exact(const Number& number) {
  return std::visit([](auto value) { return fmt::format("{}", value); }, number);
}

std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::bytes:
    case Unit::binary_bytes:
      return "B";
    case Unit::flop_rate:
      return "FLOP/s";
    case Unit::intensity:
      return "FLOP/B";
    case Unit::length:
    case Unit::plain:
      break;
  }
  return "";
}

std::string tick_text(double value, Unit unit) {
  switch (unit) {
    case Unit::binary_bytes:
      return text::binary_tick(value);
    case Unit::length:
      return text::length_tick(value);
    case Unit::intensity:
      return text::tick(value, "");
    default:
      return text::tick(value, unit_name(unit));
  }
}

std::string tick_text(double value, const Axis& axis) {
  if (axis.categories.empty()) return tick_text(value, axis.unit);
  const auto place = static_cast<std::size_t>(value + 0.5);
  return place >= 1 && place <= axis.categories.size() ? axis.categories[place - 1] : "";
}

}  // namespace hbmscope::plot
