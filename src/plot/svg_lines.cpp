#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "plot/escape.hpp"
#include "plot/svg.hpp"
#include "plot/svg_parts.hpp"
#include "plot/text_width.hpp"

namespace hbmscope::plot {
namespace {

constexpr double kPlotHeight = 400;
constexpr std::size_t kMostMarks = 48;  ///< on a line; a longer one carries a few, that its shape is told by
constexpr std::size_t kFewMarks = 12;
constexpr double kFlagRow = 15;  ///< of labels of reference lines

struct Range {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  void take(double value, bool logarithmic) {
    if (logarithmic && !(value > 0)) return;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  [[nodiscard]] bool empty() const { return !(least <= most); }
};

class Lines {
 public:
  Lines(Canvas& canvas, const Chart& chart) : canvas_(canvas), chart_(chart), legend_(chart) {
    for (const Series& series : chart.series) {
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        x_range_.take(as_double(series.x[i]), chart.x.logarithmic);
        y_range_.take(as_double(series.y[i]), chart.y.logarithmic);
      }
    }
    if (x_range_.empty()) x_range_ = {1, 10};
    if (y_range_.empty()) y_range_ = {1, 10};
    if (!chart.x.categories.empty()) x_range_ = {0.5, static_cast<double>(chart.x.categories.size()) + 0.5};
    if (!chart.y.logarithmic) y_range_ = {std::min(0.0, y_range_.least), y_range_.most * 1.05};
  }

  double draw(double top, std::string& root) {
    const double height = std::max(kPlotHeight, legend_.height());
    // Labels of the y axis decide where the drawing begins, and with it where reference lines are.
    PlotArea area{0, kWidth - legend_.width() - 34, 0, height};
    const std::vector<double> y_ticks = Scale(chart_.y, y_range_.least, y_range_.most, height, 0).ticks(9);
    area.left = std::max(46.0, y_label_width(y_ticks, chart_.y.unit) + 16);
    const Scale x(chart_.x, x_range_.least, x_range_.most, area.left, area.right);
    const std::vector<Flag> flagged = flags(x);
    area.top = top + 26 + band_of(flagged);
    area.bottom = area.top + height;
    const Scale y(chart_.y, y_range_.least, y_range_.most, area.bottom, area.top);
    draw_y_axis(canvas_, area, y, chart_.y, y_ticks, top + 14);
    draw_x_axis(canvas_, area, x, chart_.x);
    draw_flags(area, flagged, top + 22);
    for (std::size_t i = 0; i < chart_.series.size(); ++i) draw_series(chart_.series[i], i, x, y);
    legend_.draw(canvas_, area.right + 20, area.top - 4);
    root = fmt::format(R"( data-kind="lines" data-xlog="{:d}" data-ylog="{:d}" data-xrange="{} {} {} {}" )"
                       R"(data-yrange="{} {} {} {}" data-xunit="{}" data-yunit="{}")",
                       chart_.x.logarithmic, chart_.y.logarithmic, x.from(), x.to(), px(area.left), px(area.right),
                       y.from(), y.to(), px(area.bottom), px(area.top), unit_name(chart_.x.unit),
                       unit_name(chart_.y.unit));
    return area.bottom + 48;
  }

 private:
  /// A reference line's label: the row that it stands in above the drawing, and where.
  struct Flag {
    const Reference* reference;
    double x;
    std::size_t row;
  };

  /// From left to right, each a row below the one before, so that no label lies on another's line; the first row again
  /// as soon as all labels so far have ended.
  [[nodiscard]] std::vector<Flag> flags(const Scale& x) const {
    std::vector<Flag> all;
    for (const Reference& one : chart_.references) {
      if (x.contains(one.at)) all.push_back({&one, x(one.at), 0});
    }
    std::sort(all.begin(), all.end(), [](const Flag& a, const Flag& b) { return a.x < b.x; });
    double end = 0;
    std::size_t row = 0;
    for (Flag& flag : all) {
      row = flag.x > end + 12 ? 0 : row + 1;
      flag.row = row;
      end = std::max(end, flag.x + 5 + text_width(flag.reference->label, kSmall));
    }
    return all;
  }

  static double band_of(const std::vector<Flag>& flags) {
    std::size_t rows = 0;
    for (const Flag& flag : flags) rows = std::max(rows, flag.row + 1);
    return static_cast<double>(rows) * kFlagRow;
  }

  void draw_flags(const PlotArea& area, const std::vector<Flag>& flags, double top) {
    for (const Flag& flag : flags) {
      const double y = top + static_cast<double>(flag.row) * kFlagRow;
      canvas_.line(flag.x, y, flag.x, area.bottom, "guide");
      canvas_.text(flag.x + 4, y + 10, shortened(flag.reference->label, kSmall, kWidth - flag.x - 8),
                   {kSmall, Anchor::start, false, true});
    }
  }

  struct Place {
    double x, y;
  };
  /// Where the marks are; nothing for one that a logarithmic axis has no place for.
  [[nodiscard]] std::vector<std::optional<Place>> places(const Series& series, const Scale& x, const Scale& y) const {
    std::vector<std::optional<Place>> all;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const double vx = as_double(series.x[i]), vy = as_double(series.y[i]);
      const bool shown = (vx > 0 || !chart_.x.logarithmic) && (vy > 0 || !chart_.y.logarithmic);
      all.push_back(shown ? std::optional<Place>({x(vx), y(vy)}) : std::nullopt);
    }
    return all;
  }

  static std::string line_path(const std::vector<std::optional<Place>>& places) {
    std::string path;
    std::optional<Place> last;
    for (const std::optional<Place>& place : places) {
      // Points closer than that are one on every screen; leaving them out keeps a sweep of thousands small.
      if (place && last && std::abs(place->x - last->x) < 0.35 && std::abs(place->y - last->y) < 0.35) continue;
      if (place) path += (last ? "L" : "M") + px(place->x) + " " + px(place->y);
      last = place;
    }
    return path;
  }

  static std::string marks_path(const Series& series, const std::vector<std::optional<Place>>& places) {
    std::string path;
    const bool all = series.style.line == Line::none || places.size() <= kMostMarks;
    const std::size_t step = all ? 1 : places.size() / kFewMarks;
    for (std::size_t i = all ? 0 : step / 2; i < places.size(); i += step) {
      if (places[i]) path += mark_path(series.style, places[i]->x, places[i]->y);
    }
    return path;
  }

  static std::string list(const std::vector<Number>& numbers) {
    std::string text;
    for (const Number& number : numbers) {
      if (!text.empty()) text += ' ';
      text += exact(number);
    }
    return text;
  }

  /// Where the page's script finds the values: in a column of the table, or listed right here.
  [[nodiscard]] std::string values_of(const Series& series, std::size_t index) const {
    if (chart_.table.by_series) return fmt::format(R"( data-column="{}")", index + 1);
    std::string labels;
    for (std::size_t i = 0; i < series.labels.size(); ++i) {
      std::string label = escaped(series.labels[i]);
      std::replace(label.begin(), label.end(), '|', '/');  // which parts one from the next
      labels += (i == 0 ? "" : "|") + label;
    }
    return fmt::format(R"( data-x="{}" data-y="{}" data-labels="{}")", list(series.x), list(series.y), labels);
  }

  void draw_series(const Series& series, std::size_t index, const Scale& x, const Scale& y) {
    canvas_.raw(fmt::format("<g data-toggle=\"{}\"{}", escaped(series.name), values_of(series, index)));
    canvas_.raw(fmt::format(" class=\"series {}>", colour_attributes(series.style.colour)));
    const auto at = places(series, x, y);
    if (series.style.line != Line::none) {
      canvas_.raw(fmt::format(R"(<path class="line" fill="none" stroke-width="2" stroke-linejoin="round"{} d="{}"/>)",
                              dash_attribute(series.style.line), line_path(at)));
    }
    if (series.style.shape != Shape::none) {
      canvas_.raw(fmt::format(R"(<path stroke-width="1.5"{} d="{}"/>)",
                              series.style.filled ? R"( class="dots")" : R"( class="dots hole" fill="#ffffff")",
                              marks_path(series, at)));
    }
    canvas_.raw("</g>\n");
  }

  Canvas& canvas_;
  const Chart& chart_;
  Legend legend_;
  Range x_range_, y_range_;
};

}  // namespace

double draw_lines(Canvas& canvas, const Chart& chart, double top, std::string& root) {
  return Lines(canvas, chart).draw(top, root);
}

}  // namespace hbmscope::plot
