#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/amdahl.hpp"
#include "plot/palette.hpp"
#include "plot/picture_parts.hpp"
#include "report/format.hpp"

namespace hbmscope::plot {
namespace {

constexpr double kShares[] = {0.1, 0.3, 0.5, 0.7, 0.9};
constexpr std::size_t kMostMarked = 8;

Series curve(double share, double most, int index, Line line) {
  const double limit = amdahl(share, 1).limit;
  Series series{"attention is " + text::percent(share) + " of the step",
                std::isfinite(limit) ? fmt::format("at most {}", text::factor(limit)) : "no limit",
                {index, line, Shape::none, true},
                {},
                {},
                {}};
  constexpr int kSteps = 48;
  for (int step = 0; step <= kSteps; ++step) {
    const double speedup = std::pow(most, static_cast<double>(step) / kSteps);
    series.x.emplace_back(speedup);
    series.y.emplace_back(amdahl(share, speedup).end_to_end_speedup);
  }
  return series;
}

/// Has the result anything of its own to show: a speed-up, or attention's share?
bool has_own(const Result& r) {
  const auto known = [](const ResultComparison& c) { return c.speedup_predicted || c.speedup_measured; };
  return r.amdahl.attention_share || std::any_of(r.comparisons.begin(), r.comparisons.end(), known);
}

Chart amdahl_chart(const PlotData& data, std::size_t result) {
  const Result& r = data.results()[result];
  Chart chart = new_chart("amdahl", data, {result});
  chart.variant = data.label(result, data.varying());
  chart.boundary = "none: times";
  chart.x = {"speed-up of attention alone", Unit::plain, true};
  chart.y = {"speed-up of the whole step", Unit::plain, true};
  double most = 100;
  for (const ResultComparison& c : r.comparisons) {
    for (const auto& [speedup, witness] :
         {std::pair(c.speedup_predicted, "predicted"), std::pair(c.speedup_measured, "measured")}) {
      if (!speedup || *speedup < 1 || *speedup > kMostSpeedup || chart.references.size() >= kMostMarked) continue;
      const std::string label = fmt::format("{} over {}, {} {}", c.of, c.to, witness, text::factor(*speedup));
      const auto same = [&](const Reference& other) { return other.label == label; };
      if (std::any_of(chart.references.begin(), chart.references.end(), same)) continue;  // one a boundary
      chart.references.push_back({*speedup, label});
      most = std::max(most, *speedup * 2);
    }
  }
  const std::optional<double> own = r.amdahl.attention_share;
  if (own && *own >= 0 && *own <= 1) {
    chart.series.push_back(curve(*own, most, kInk, Line::solid));
    const std::optional<double> speedup = r.amdahl.attention_speedup;
    if (speedup && *speedup > 0 && *speedup <= kMostSpeedup && r.amdahl.end_to_end_speedup) {
      chart.series.push_back({"this result",
                              r.amdahl.speedup_from,
                              {kInk, Line::none, Shape::circle, true},
                              {*speedup},
                              {*r.amdahl.end_to_end_speedup},
                              {}});
    }
  } else {
    chart.notes.emplace_back("The result does not say what share of a step attention is (--attention-share).");
  }
  constexpr Line kLines[] = {Line::dotted, Line::dashed, Line::solid, Line::dashed, Line::dotted};
  int index = 0;
  for (const double share : kShares) {
    if (!own || std::abs(share - *own) > 1e-9) chart.series.push_back(curve(share, most, index, kLines[index]));
    ++index;
  }
  if (chart.references.empty())
    chart.notes.emplace_back("No speed-up is marked: the result compares no two algorithms in time.");
  chart.notes.emplace_back("Amdahl: 1 / (1 - p + p / s) for a share p and a speed-up s.");
  chart.table = table_of_series(chart);
  return chart;
}

}  // namespace

Drawn draw_amdahl(const PlotData& data) {
  Drawn drawn;
  for (std::size_t i = 0; i < data.results().size() && drawn.charts.size() < kMostCharts; ++i) {
    if (has_own(data.results()[i])) drawn.charts.push_back(amdahl_chart(data, i));
  }
  if (!drawn.charts.empty()) return drawn;
  drawn.charts.push_back(amdahl_chart(data, 0));  // the curves alone, which are the same for all
  drawn.charts.back().variant.clear();
  return drawn;
}

}  // namespace hbmscope::plot
