#include "report/text_chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

namespace hbmscope {
namespace {

std::string repeated(std::string_view part, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += part;
  return out;
}

/// Characters for the two parts of a bar: at least one for a part that is there, and no more than `room` in all.
std::pair<std::size_t, std::size_t> lengths(const TextBar& bar, double most, std::size_t room) {
  const auto cells = [&](double value) {
    if (value <= 0 || most <= 0) return std::size_t{0};
    return std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(value / most * static_cast<double>(room))));
  };
  std::size_t first = cells(bar.first), second = cells(bar.second);
  while (first + second > room && std::max(first, second) > 1) --(first > second ? first : second);
  return {first, second};
}

/// A canvas of cells, each a character of one or more bytes.
class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows) : columns_(columns), rows_(rows), cells_(columns * rows, " ") {}
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] std::size_t rows() const { return rows_; }
  std::string& at(std::size_t column, std::size_t row) { return cells_[row * columns_ + column]; }
  [[nodiscard]] std::string line(std::size_t row) const {
    std::string out;
    for (std::size_t column = 0; column < columns_; ++column) out += cells_[row * columns_ + column];
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  }

 private:
  std::size_t columns_, rows_;
  std::vector<std::string> cells_;
};

/// A logarithmic axis over cells 0 to `cells` - 1.
class LogAxis {
 public:
  LogAxis(double least, double most, std::size_t cells)
      : from_(std::log10(least)), to_(std::log10(most)), last_(static_cast<double>(cells - 1)) {}
  [[nodiscard]] std::size_t cell(double value) const {
    const double place = (std::log10(value) - from_) / (to_ - from_) * last_;
    return static_cast<std::size_t>(std::lround(std::clamp(place, 0.0, last_)));
  }
  [[nodiscard]] double value(std::size_t cell) const {
    return std::pow(10, from_ + (to_ - from_) * static_cast<double>(cell) / last_);
  }
  /// Powers of ten on the axis.
  [[nodiscard]] std::vector<double> decades() const {
    std::vector<double> out;
    for (double power = std::ceil(from_ - 1e-9); power <= to_ + 1e-9; ++power) out.push_back(std::pow(10, power));
    return out;
  }

 private:
  double from_, to_, last_;
};

constexpr std::size_t kRooflineRows = 14, kLabelColumns = 14;

/// A dotted line under `most`, and its mark where it begins; marks on one place move to the right.
void draw_line(Canvas& canvas, const LogAxis& x, const LogAxis& y, const TextLine& line, double least, double most,
               std::string_view dot, std::vector<std::pair<std::size_t, std::size_t>>& taken) {
  std::vector<std::pair<std::size_t, std::size_t>> cells;
  for (std::size_t column = 0; column < canvas.columns(); ++column) {
    const double at = line.sloped ? line.rate * x.value(column) : line.rate;
    if (at < least || at > most) continue;
    cells.emplace_back(column, canvas.rows() - 1 - y.cell(at));
    std::string& cell = canvas.at(cells.back().first, cells.back().second);
    if (cell == " ") cell = dot;
  }
  if (!line.sloped) std::reverse(cells.begin(), cells.end());
  for (const auto& place : cells) {
    if (std::find(taken.begin(), taken.end(), place) != taken.end()) continue;
    canvas.at(place.first, place.second) = std::string(1, line.mark);
    taken.push_back(place);
    return;
  }
}

}  // namespace

std::vector<std::string> draw_bars(const std::vector<TextBar>& bars, const ChartStyle& style) {
  std::size_t label = 0, value = 0;
  double most = 0;
  for (const TextBar& bar : bars) {
    label = std::max(label, bar.label.size());
    value = std::max(value, bar.value.size());
    most = std::max(most, bar.first + bar.second);
  }
  const std::size_t width = static_cast<std::size_t>(style.width), taken = 2 + label + 2 + 2 + value;
  const std::size_t room = std::max<std::size_t>(10, width > taken ? width - taken : 0);
  const std::string_view first = style.unicode ? "█" : "#", second = style.unicode ? "▒" : "=";
  std::vector<std::string> lines;
  for (const TextBar& bar : bars) {
    const auto [a, b] = lengths(bar, most, room);
    lines.push_back("  " + bar.label + std::string(label - bar.label.size() + 2, ' ') + repeated(first, a) +
                    repeated(second, b) + (bar.value.empty() ? "" : "  " + bar.value));
  }
  return lines;
}

std::vector<std::string> draw_roofline(const TextRoof& roof, const std::vector<TextPoint>& points, const TextAxes& axes,
                                       const ChartStyle& style) {
  double least_x = roof.ridge, most_x = roof.ridge, least_y = roof.peak, most_y = roof.peak;
  for (const TextLine& line : roof.more) {
    if (!line.sloped) most_y = std::max(most_y, std::min(line.rate, roof.peak * 10));  // far above: nobody meets it
  }
  for (const TextPoint& p : points) {
    least_x = std::min(least_x, p.x);
    most_x = std::max(most_x, p.x);
    least_y = std::min(least_y, p.y);
  }
  least_x /= 3;
  most_x *= 3;
  // The roof begins at the left edge, unless a point lies lower.
  least_y = std::min(least_y / 2, roof.peak / roof.ridge * least_x);
  Canvas canvas(static_cast<std::size_t>(style.width) - kLabelColumns - 1, kRooflineRows);
  const LogAxis x(least_x, most_x, canvas.columns()), y(least_y, most_y * 1.5, canvas.rows());
  const auto row_of = [&](double value) { return canvas.rows() - 1 - y.cell(value); };

  const std::string_view slope = style.unicode ? "╱" : "/", flat = style.unicode ? "─" : "-";
  for (std::size_t column = 0; column < canvas.columns(); ++column) {
    const double at = x.value(column), bound = roof.peak / roof.ridge * at;
    if (bound < least_y) continue;
    canvas.at(column, row_of(std::min(bound, roof.peak))) = bound < roof.peak ? slope : flat;
  }
  std::vector<std::pair<std::size_t, std::size_t>> marked, taken;
  for (const TextLine& line : roof.more) {
    draw_line(canvas, x, y, line, least_y, line.sloped ? roof.peak : most_y, style.unicode ? "·" : ".", marked);
  }
  for (const TextPoint& p : points) {
    std::pair<std::size_t, std::size_t> place{x.cell(p.x), row_of(p.y)};
    while (std::find(taken.begin(), taken.end(), place) != taken.end() && place.first + 1 < canvas.columns())
      ++place.first;
    taken.push_back(place);
    canvas.at(place.first, place.second) = std::string(1, p.mark);
  }

  const std::string_view side = style.unicode ? "│" : "|", corner = style.unicode ? "└" : "+";
  std::vector<std::string> labels(canvas.rows());
  for (const double decade : y.decades()) labels[row_of(decade)] = axes.y_label(decade);
  std::vector<std::string> lines;
  for (std::size_t row = 0; row < canvas.rows(); ++row) {
    const std::string label = labels[row].substr(0, kLabelColumns - 1);
    lines.push_back(std::string(kLabelColumns - 1 - label.size(), ' ') + label + " " + std::string(side) +
                    canvas.line(row));
  }
  lines.push_back(std::string(kLabelColumns, ' ') + std::string(corner) + repeated(flat, canvas.columns()));
  std::string under(static_cast<std::size_t>(style.width), ' ');
  std::size_t free = 0;
  for (const double decade : x.decades()) {
    const std::string label = axes.x_label(decade);
    const std::size_t middle = kLabelColumns + 1 + x.cell(decade), half = label.size() / 2;
    const std::size_t begin = std::min(middle - std::min(half, middle), under.size() - label.size());
    if (begin < free) continue;
    under.replace(begin, label.size(), label);
    free = begin + label.size() + 1;
  }
  under.erase(under.find_last_not_of(' ') + 1);
  lines.push_back(under);
  return lines;
}

}  // namespace hbmscope
