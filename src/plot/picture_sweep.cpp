#include <fmt/format.h>

#include <algorithm>

#include "plot/palette.hpp"
#include "plot/picture_parts.hpp"

namespace hbmscope::plot {
namespace {

/// One line or one set of marks: an algorithm's bytes at a boundary, as one kind of witness has them.
Series series_of(const PlotData& data, const Grouped& by, const Group& group, const std::string& algorithm,
                 std::string_view boundary, bool from_counters) {
  Series series{fmt::format("{} at {}{}", algorithm, boundary_name(boundary), from_counters ? ", measured" : ""),
                "",
                algorithm_style(algorithm),
                {},
                {},
                {}};
  series.style.small = boundary == "sm_l2";
  if (series.style.small) series.style.line = Line::dashed;
  if (from_counters) {
    series.style.line = Line::none;
    series.style.filled = false;
  }
  for (const std::size_t i : group.results) {
    const Result& r = data.results()[i];
    const ResultAlgorithm* a = r.find(algorithm);
    const ResultTraffic* entry = a == nullptr    ? nullptr
                                 : from_counters ? measured(*a, boundary)
                                                 : predicted(*a, boundary);
    if (entry == nullptr) continue;
    series.x.push_back(x_of(data, by, i));
    series.y.push_back(y_of(data, by, i, *entry->total));
  }
  series.note = exponent_note(series, symbol_of(by.x));
  return series;
}

Chart sweep_chart(const PlotData& data, const Grouped& by, const Group& group) {
  Chart chart = new_chart("sweep", data, group.results);
  chart.variant = group.label;
  chart.x = {axis_title(by.x), axis_unit(by.x), true};
  chart.y = {by.per_head ? "bytes for one batch entry and head" : "bytes read and written", Unit::bytes, true};
  bool any_measured = false, any_hbm = false, any_sm = false;
  for (const std::string& name : algorithm_names(data, group.results)) {
    for (const char* boundary : {"l2_hbm", "sm_l2"}) {
      for (const bool counters : {false, true}) {
        Series series = series_of(data, by, group, name, boundary, counters);
        if (series.x.empty()) continue;
        any_measured = any_measured || counters;
        (std::string_view(boundary) == "l2_hbm" ? any_hbm : any_sm) = true;
        chart.series.push_back(std::move(series));
      }
    }
  }
  if (chart.series.empty()) return chart;
  if (any_hbm) chart.boundary = "HBM: between L2 and HBM (full lines)";
  if (any_sm) {
    chart.boundary +=
        fmt::format("{}SM-L2: every tile load and store (dashed lines, small marks)", any_hbm ? "; " : "");
  }
  chart.table = table_of_series(chart);
  if (!any_hbm)
    chart.notes.push_back("No bytes through HBM: " + why_no_hbm(data.results()[group.results[0]]) +
                          ". At SM-L2 alone no algorithm shows what the L2 saves it.");
  chart.notes.emplace_back(
      "Exponents: least squares on the logarithms, with the 95 % interval of Student's t. Predicted "
      "bytes are exact, so the interval tells how straight a line is.");
  if (by.per_head) chart.notes.emplace_back("Batch and heads change along the lines, so bytes are divided by both.");
  if (!any_measured)
    chart.notes.push_back("No measured marks: " + why_not_measured(data.results()[group.results[0]]) + ".");
  return chart;
}

bool runs_along(const PlotData& data, const Grouped& by, const Group& group) {
  return *data.find(group.results.front(), by.x)->number < *data.find(group.results.back(), by.x)->number;
}

}  // namespace

Drawn draw_sweep(const PlotData& data) {
  const std::optional<Grouped> by = grouped(data);
  if (!by) {
    return {{},
            data.results().size() == 1 ? "there is one result; a line needs two or more, such as a sweep of N"
                                       : "the results do not differ in a number such as N"};
  }
  Drawn drawn;
  std::size_t lines = 0;
  for (const Group& group : by->groups) {
    if (!runs_along(data, *by, group)) continue;
    ++lines;
    if (drawn.charts.size() == kMostCharts) continue;
    Chart chart = sweep_chart(data, *by, group);
    if (!chart.series.empty()) drawn.charts.push_back(std::move(chart));
  }
  if (drawn.charts.empty()) drawn.reason = "no two results differ in " + by->x + " alone";
  if (lines > kMostCharts) {
    for (Chart& chart : drawn.charts) {
      chart.notes.push_back(fmt::format("Of {} such pictures the first {} can be picked here; --where picks others.",
                                        lines, kMostCharts));
    }
  }
  return drawn;
}

}  // namespace hbmscope::plot
