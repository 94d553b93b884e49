#include <fmt/format.h>

#include <algorithm>

#include "plot/escape.hpp"
#include "plot/palette.hpp"
#include "plot/svg.hpp"
#include "plot/svg_parts.hpp"
#include "plot/text_width.hpp"

namespace hbmscope::plot {
namespace {

constexpr double kSample = 30;  ///< of a line, in the legend
constexpr double kLegendRow = 18, kLegendNote = 15;
constexpr double kMostLegend = 300;

}  // namespace

Legend::Legend(const Chart& chart) : chart_(chart) {
  for (const Series& series : chart.series)
    width_ = std::max({width_, text_width(series.name, kText), text_width(series.note, kSmall)});
  width_ = chart.series.empty() ? 0 : std::min(width_ + kSample + 12, kMostLegend);
}

double Legend::height() const {
  double sum = 0;
  for (const Series& series : chart_.series) sum += kLegendRow + (series.note.empty() ? 0 : kLegendNote) + 4;
  return sum;
}

void Legend::draw(Canvas& canvas, double x, double y) const {
  for (const Series& series : chart_.series) {
    const double middle = y + kLegendRow / 2;
    canvas.raw(fmt::format("<g class=\"{}>", colour_attributes(series.style.colour)));
    if (chart_.kind == Kind::histogram) {
      canvas.raw(fmt::format(R"(<path stroke="none" d="M{} {}h16v14h-16z"/>)", px(x + 7), px(middle - 7)));
      canvas.raw(fmt::format(R"(<path class="on" stroke="none" fill="#ffffff" d="{}"/>)",
                             mark_path(series.style, x + kSample / 2, middle)));
    } else {
      if (series.style.line != Line::none) {
        canvas.raw(fmt::format(R"(<path fill="none" stroke-width="2"{} d="M{} {}h{}"/>)",
                               dash_attribute(series.style.line), px(x), px(middle), px(kSample)));
      }
      if (series.style.shape != Shape::none) {
        canvas.raw(fmt::format(R"(<path stroke-width="1.5"{} d="{}"/>)",
                               series.style.filled ? "" : R"( class="hole" fill="#ffffff")",
                               mark_path(series.style, x + kSample / 2, middle)));
      }
    }
    canvas.raw("</g>\n");
    const double room = kMostLegend - kSample - 8;
    canvas.text(x + kSample + 8, middle + 4, shortened(clean(series.name), kText, room));
    y += kLegendRow;
    if (!series.note.empty()) {
      canvas.text(x + kSample + 8, y + 10, shortened(clean(series.note), kSmall, room),
                  {kSmall, Anchor::start, false, true});
      y += kLegendNote;
    }
    y += 4;
  }
}

std::vector<double> ticks_apart(const Scale& scale, const Axis& axis) {
  if (!axis.categories.empty()) {
    std::vector<double> places;
    for (std::size_t i = 1; i <= axis.categories.size(); ++i) places.push_back(static_cast<double>(i));
    return places;
  }
  for (std::size_t wanted = 12; wanted > 2; --wanted) {
    std::vector<double> ticks = scale.ticks(wanted);
    double end = -1e9;
    bool apart = true;
    for (const double tick : ticks) {
      const double half = text_width(tick_text(tick, axis), kText) / 2;
      apart = apart && scale(tick) - half > end + 8;
      end = scale(tick) + half;
    }
    if (apart) return ticks;
  }
  std::vector<double> few = scale.ticks(2);
  if (few.size() > 2) few.erase(few.begin() + 1, few.end() - 1);
  return few;
}

void draw_x_axis(Canvas& canvas, const PlotArea& area, const Scale& scale, const Axis& axis) {
  const double width = area.right - area.left;
  const double room = axis.categories.empty() ? width : width / static_cast<double>(axis.categories.size()) - 6;
  for (const double tick : ticks_apart(scale, axis)) {
    canvas.line(scale(tick), area.top, scale(tick), area.bottom, "grid");
    canvas.text(scale(tick), area.bottom + 17, shortened(clean(tick_text(tick, axis)), kText, room),
                {kText, Anchor::middle});
  }
  canvas.line(area.left, area.bottom, area.right, area.bottom, "axis");
  canvas.text((area.left + area.right) / 2, area.bottom + 38,
              shortened(clean(axis.title), kText, area.right - area.left), {kText, Anchor::middle});
}

double y_label_width(const std::vector<double>& ticks, Unit unit) {
  double width = 0;
  for (const double tick : ticks) width = std::max(width, text_width(tick_text(tick, unit), kText));
  return width;
}

void draw_y_axis(Canvas& canvas, const PlotArea& area, const Scale& scale, const Axis& axis,
                 const std::vector<double>& ticks, double title_y) {
  for (const double tick : ticks) {
    canvas.line(area.left, scale(tick), area.right, scale(tick), "grid");
    canvas.text(area.left - 7, scale(tick) + 4, tick_text(tick, axis.unit), {kText, Anchor::end});
  }
  canvas.line(area.left, area.top, area.left, area.bottom, "axis");
  canvas.text(8, title_y, shortened(clean(axis.title), kText, kWidth / 2), {kText});
}

}  // namespace hbmscope::plot
