#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plot/escape.hpp"
#include "plot/palette.hpp"
#include "plot/svg.hpp"
#include "plot/svg_parts.hpp"

namespace hbmscope::plot {
namespace {

constexpr double kHistogramHeight = 300;

}  // namespace

double draw_histogram(Canvas& canvas, const Chart& chart, double top, std::string& root) {
  const Legend legend(chart);
  PlotArea area{0, kWidth - legend.width() - 34, top + 26, 0};
  area.bottom = area.top + std::max(kHistogramHeight, legend.height());
  std::int64_t most = 1;
  for (const Bin& bin : chart.bins)
    most = std::max(most, chart.side_by_side ? *std::max_element(bin.counts.begin(), bin.counts.end())
                                             : std::accumulate(bin.counts.begin(), bin.counts.end(), std::int64_t{0}));
  const Scale y(chart.y, 0, 1.05 * static_cast<double>(most), area.bottom, area.top);
  std::vector<double> ticks = y.ticks(8);
  std::erase_if(ticks, [](double tick) { return std::abs(tick - std::round(tick)) > 0.01; });  // it counts
  area.left = std::max(46.0, y_label_width(ticks, chart.y.unit) + 16);
  const Scale x(chart.x, chart.bins.front().from, chart.bins.back().to, area.left, area.right);
  draw_y_axis(canvas, area, y, chart.y, ticks, top + 14);
  draw_x_axis(canvas, area, x, chart.x);
  std::vector<std::int64_t> below(chart.bins.size(), 0);
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    canvas.raw(fmt::format("<g data-toggle=\"{}\" class=\"bar\">\n", escaped(chart.series[s].name)));
    for (std::size_t b = 0; b < chart.bins.size(); ++b) {
      const Bin& bin = chart.bins[b];
      const std::int64_t count = bin.counts[s];
      if (count == 0) continue;
      const double low = y(static_cast<double>(below[b])), high = y(static_cast<double>(below[b] + count));
      if (!chart.side_by_side) below[b] += count;
      const double parts = chart.side_by_side ? static_cast<double>(chart.series.size()) : 1,
                   part = (x(bin.to) - x(bin.from) - 1) / parts;
      const double x_from = x(bin.from) + 0.5 + (chart.side_by_side ? static_cast<double>(s) * part : 0);
      const double width = std::max(part - (parts > 1 ? 0.5 : 0), 0.3);
      const std::string what = fmt::format("{}, {} to {}", chart.series[s].name, tick_text(bin.from, chart.x.unit),
                                           tick_text(bin.to, chart.x.unit));
      canvas.bar(x_from, high, width, low - high - (low - high > 2 ? 1 : 0), chart.series[s].style.colour,
                 fmt::format(R"( data-value="{}" data-name="{}")", count, escaped(what)),
                 fmt::format("{}: {}", what, count));
      if (low - high > 14 && width > 14) {
        canvas.raw(fmt::format("<path class=\"on\" fill=\"#ffffff\" pointer-events=\"none\" d=\"{}\"/>\n",
                               mark_path(chart.series[s].style, x_from + width / 2, (low + high) / 2)));
      }
    }
    canvas.raw("</g>\n");
  }
  legend.draw(canvas, area.right + 20, area.top - 4);
  root = R"( data-kind="histogram" data-yunit="")";
  return area.bottom + 48;
}

}  // namespace hbmscope::plot
