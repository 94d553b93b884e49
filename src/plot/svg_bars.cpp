#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "plot/escape.hpp"
#include "plot/palette.hpp"
#include "plot/svg.hpp"
#include "plot/svg_parts.hpp"
#include "plot/text_width.hpp"
#include "report/format.hpp"

namespace hbmscope::plot {
namespace {

constexpr double kBarRow = 24, kBarHeight = 17, kGroupRow = 26;
constexpr double kMostKey = 220;  ///< of a tensor's name

std::string total_text(const Bar& bar) {
  const auto* whole = std::get_if<std::int64_t>(&bar.total);
  return whole != nullptr ? text::bytes(Bytes(*whole)) : exact(bar.total);
}

/// What the colours mean, in lines that break where the width ends. Returns the bottom.
double draw_keys(Canvas& canvas, const Chart& chart, double top, std::string_view hatch) {
  std::vector<const Segment*> keys;
  for (const Bar& bar : chart.bars) {
    for (const Segment& segment : bar.segments) {
      const auto same = [&](const Segment* key) { return key->name == segment.name; };
      if (std::none_of(keys.begin(), keys.end(), same)) keys.push_back(&segment);
    }
  }
  double x = 8, y = top;
  for (const Segment* key : keys) {
    const std::string name = shortened(clean(key->name), kText, kMostKey);
    const double width = 20 + text_width(name, kText) + 18;
    if (x + width > kWidth && x > 8) {
      x = 8;
      y += 20;
    }
    canvas.raw(fmt::format(R"(<rect x="{}" y="{}" width="13" height="13" class="b{}" fill="{}"/>)", px(x), px(y),
                           key->colour, colour(key->colour).light));
    if (key->hatched)
      canvas.raw(fmt::format(R"x(<rect x="{}" y="{}" width="13" height="13" fill="url(#{})"/>)x", px(x), px(y), hatch));
    canvas.text(x + 19, y + 11, name);
    x += width;
  }
  return keys.empty() ? top : y + 24;
}

void draw_whisker(Canvas& canvas, const Scale& x, const Bar& bar, double middle) {
  if (!bar.least || !bar.most) return;
  const double from = x(as_double(*bar.least)), to = x(as_double(*bar.most));
  canvas.line(from, middle, to, middle, "whisker");
  for (const double end : {from, to}) canvas.line(end, middle - 5, end, middle + 5, "whisker");
}

void draw_bar(Canvas& canvas, const Scale& x, const Bar& bar, double y, std::string_view hatch) {
  canvas.raw(fmt::format("<g class=\"bar\" data-toggle=\"{}\">\n", escaped(bar.kind)));
  canvas.text(x(0) - 8, y + kBarHeight - 4, bar.label, {kText, Anchor::end});
  double sum = 0;
  for (const Segment& segment : bar.segments) {
    const double value = as_double(segment.value), from = x(sum), width = x(sum + value) - from;
    sum += value;
    const auto* whole = std::get_if<std::int64_t>(&segment.value);
    const std::string what = fmt::format("{}, {}: {}", bar.group, bar.label, segment.name);
    const std::string shown = whole != nullptr ? text::bytes(Bytes(*whole)) : exact(segment.value);
    // A hair's breadth stays free beside each segment, so that neighbours are two without colour too.
    canvas.bar(from, y, width > 3 ? width - 1 : width, kBarHeight, segment.colour,
               fmt::format(R"( data-value="{}" data-name="{}")", exact(segment.value), escaped(what)),
               what + " " + shown);
    if (segment.hatched) {
      canvas.raw(
          fmt::format(R"x(<rect x="{}" y="{}" width="{:.2f}" height="{}" fill="url(#{})" pointer-events="none"/>)x",
                      px(from), px(y), width > 3 ? width - 1 : width, px(kBarHeight), hatch));
    } else if (width > text_width(segment.name, kSmall, true) + 6) {
      canvas.text(from + width / 2, y + kBarHeight - 4.5, segment.name, {kSmall, Anchor::middle, true, false, 0, true});
    }
  }
  draw_whisker(canvas, x, bar, y + kBarHeight / 2);
  const double end = std::max(x(as_double(bar.total)), bar.most ? x(as_double(*bar.most)) + 3 : 0);
  canvas.text(end + 6, y + kBarHeight - 4, total_text(bar));
  canvas.raw("</g>\n");
}

}  // namespace

double draw_bars(Canvas& canvas, const Chart& chart, double top, std::string_view id, std::string& root) {
  const std::string hatch = std::string(id) + "-hatch";
  canvas.raw(
      fmt::format("<defs><pattern id=\"{}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
                  "<path d=\"M0 6L6 0\" stroke=\"#ffffff\" stroke-width=\"1.4\"/></pattern></defs>\n",
                  hatch));
  double most = 0, labels = 0, ends = 0;
  for (const Bar& bar : chart.bars) {
    most = std::max({most, as_double(bar.total), bar.most ? as_double(*bar.most) : 0});
    labels = std::max(labels, text_width(bar.label, kText));
    ends = std::max(ends, text_width(total_text(bar), kText));
  }
  double y = draw_keys(canvas, chart, top, hatch);
  PlotArea area{labels + 22, kWidth - ends - 20, y, 0};
  area.bottom = y;
  const std::string* group = nullptr;
  std::vector<std::pair<const Bar*, double>> rows;
  std::vector<std::pair<std::string_view, double>> groups;
  for (const Bar& bar : chart.bars) {
    if (group == nullptr || *group != bar.group) {
      groups.emplace_back(bar.group, area.bottom + kGroupRow - 8);
      area.bottom += kGroupRow;
    }
    group = &bar.group;
    rows.emplace_back(&bar, area.bottom);
    area.bottom += kBarRow;
  }
  const Scale x({"", Unit::bytes, false}, 0, most > 0 ? most : 1, area.left, area.right);
  draw_x_axis(canvas, area, x, chart.x);
  canvas.line(area.left, area.top, area.left, area.bottom, "axis");
  for (const auto& [name, at] : groups)
    canvas.text(8, at, shortened(clean(name), kText, kWidth - 200), {kText, Anchor::start, true});
  for (const auto& [bar, at] : rows) draw_bar(canvas, x, *bar, at, hatch);
  root = fmt::format(R"( data-kind="bars" data-yunit="{}")", unit_name(chart.x.unit));
  return area.bottom + 48;
}

}  // namespace hbmscope::plot
