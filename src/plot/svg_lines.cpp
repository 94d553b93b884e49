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
constexpr double kLabelStep = 14;  ///< between upright labels of reference lines

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
    if (!chart.y.logarithmic) y_range_ = {std::min(0.0, y_range_.least), y_range_.most * 1.05};
  }

  double draw(double top, std::string& root) {
    const double height = std::max(kPlotHeight, legend_.height());
    const double title_y = top + 14;
    const double band = reference_band();
    PlotArea area{0, kWidth - legend_.width() - 34, top + 26 + band, 0};
    area.bottom = area.top + height;
    const Scale y(chart_.y, y_range_.least, y_range_.most, area.bottom, area.top);
    const std::vector<double> y_ticks = y.ticks(9);
    area.left = std::max(46.0, y_label_width(y_ticks, chart_.y.unit) + 16);
    const Scale x(chart_.x, x_range_.least, x_range_.most, area.left, area.right);
    draw_y_axis(canvas_, area, y, chart_.y, y_ticks, title_y);
    draw_x_axis(canvas_, area, x, chart_.x);
    references(area, x, band);
    const Series* first = nullptr;
    for (const Series& series : chart_.series) {
      draw_series(series, x, y, first != nullptr && first->x == series.x);
      if (first == nullptr) first = &series;
    }
    legend_.draw(canvas_, area.right + 20, area.top - 4);
    root = fmt::format(R"( data-kind="lines" data-xlog="{:d}" data-ylog="{:d}" data-xrange="{} {} {} {}" )"
                       R"(data-yrange="{} {} {} {}" data-xunit="{}" data-yunit="{}")",
                       chart_.x.logarithmic, chart_.y.logarithmic, x.from(), x.to(), px(area.left), px(area.right),
                       y.from(), y.to(), px(area.bottom), px(area.top), unit_name(chart_.x.unit),
                       unit_name(chart_.y.unit));
    return area.bottom + 48;
  }

 private:
  [[nodiscard]] double reference_band() const {
    double widest = 0;
    for (const Reference& one : chart_.references) widest = std::max(widest, text_width(one.label, kSmall));
    return chart_.references.empty() ? 0 : widest + 18;
  }

  /// Upright labels above the drawing, moved apart where their lines are close, and joined to them.
  void references(const PlotArea& area, const Scale& x, double band) {
    std::vector<const Reference*> shown;
    for (const Reference& one : chart_.references) {
      if (x.contains(one.at)) shown.push_back(&one);
    }
    std::sort(shown.begin(), shown.end(), [](const Reference* a, const Reference* b) { return a->at < b->at; });
    std::vector<double> places;
    for (const Reference* one : shown)
      places.push_back(places.empty() ? x(one->at) : std::max(x(one->at), places.back() + kLabelStep));
    double limit = area.right;
    for (std::size_t i = places.size(); i-- > 0;) {
      places[i] = std::min(places[i], limit);
      limit = places[i] - kLabelStep;
    }
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const double at = x(shown[i]->at), knee = area.top - 14;
      canvas_.polyline(
          fmt::format("{},{} {},{} {},{}", px(places[i]), px(knee), px(at), px(area.top), px(at), px(area.bottom)),
          "guide");
      canvas_.text(places[i] + 4, knee - 3, shortened(shown[i]->label, kSmall, band),
                   {kSmall, Anchor::start, false, true, -90});
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
      if (places[i]) path += mark_path(series.style.shape, places[i]->x, places[i]->y);
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

  void draw_series(const Series& series, const Scale& x, const Scale& y, bool x_as_first) {
    std::string labels;
    for (std::size_t i = 0; i < series.labels.size(); ++i) {
      std::string label = escaped(series.labels[i]);
      std::replace(label.begin(), label.end(), '|', '/');  // which parts one from the next
      labels += (i == 0 ? "" : "|") + label;
    }
    canvas_.raw(fmt::format("<g data-toggle=\"{}\"{}{} data-y=\"{}\"", escaped(series.name),
                            x_as_first ? "" : " data-x=\"" + list(series.x) + "\"",
                            series.labels.empty() ? "" : " data-labels=\"" + labels + "\"", list(series.y)));
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
