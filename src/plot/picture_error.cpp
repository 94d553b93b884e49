#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plot/palette.hpp"
#include "plot/picture_parts.hpp"

namespace hbmscope::plot {
namespace {

/// One value of an algorithm, its largest error over the tolerance for it.
struct Share {
  std::string algorithm;
  double value;
  std::string label;
};

/// Bins by powers of ten to the quarter, so that their edges look even on the axis.
constexpr double kBinsPerDecade = 4;
constexpr double kLeastShare = 1e-9, kMostShare = 1e9;  ///< what is beyond stands in the outermost bin

Chart histogram(const PlotData& data, const std::vector<Share>& shares) {
  Chart chart = new_chart("error", data, all_results(data));
  chart.kind = Kind::histogram;
  chart.x = {"largest error / tolerance (1 is the limit)", Unit::plain, true};
  chart.y = {"results", Unit::plain, false};
  double least = INFINITY, most = 0;
  for (const Share& share : shares) {
    least = std::min(least, share.value);
    most = std::max(most, share.value);
  }
  const int first = static_cast<int>(std::floor(std::log10(least) * kBinsPerDecade)),
            last = static_cast<int>(std::floor(std::log10(most) * kBinsPerDecade));
  const std::vector<std::string> names = algorithm_names(data, all_results(data));
  for (const std::string& name : names) chart.series.push_back({name, "", algorithm_style(name), {}, {}, {}});
  for (int bin = first; bin <= last; ++bin) {
    chart.bins.push_back({std::pow(10, bin / kBinsPerDecade), std::pow(10, (bin + 1) / kBinsPerDecade),
                          std::vector<std::int64_t>(names.size(), 0)});
  }
  for (const Share& share : shares) {
    const int bin = static_cast<int>(std::floor(std::log10(share.value) * kBinsPerDecade));
    const auto series = std::find(names.begin(), names.end(), share.algorithm) - names.begin();
    ++chart.bins[static_cast<std::size_t>(bin - first)].counts[static_cast<std::size_t>(series)];
  }
  chart.table.head = {"largest error / tolerance, from", "to"};
  for (const std::string& name : names) chart.table.head.push_back(name + " [results]");
  for (const Bin& bin : chart.bins) {
    std::vector<Cell> row{Number(bin.from), Number(bin.to)};
    for (const std::int64_t count : bin.counts) row.emplace_back(Number(count));
    chart.table.rows.push_back(std::move(row));
  }
  return chart;
}

/// Of a single result: its largest error, its rms and the tolerance, an algorithm after the other.
Chart errors_of_one(const PlotData& data) {
  Chart chart = new_chart("error", data, {0});
  chart.x = {"algorithm", Unit::plain, false};
  chart.y = {"error of O against fp64", Unit::plain, true};
  Series most{"largest error", "", {0, Line::none, Shape::diamond, true}, {}, {}, {}};
  Series rms{"root mean square", "", {2, Line::none, Shape::circle, true}, {}, {}, {}};
  Series limit{"tolerance", "", {kInk, Line::none, Shape::square, false}, {}, {}, {}};
  std::int64_t place = 0;
  for (const ResultAlgorithm& a : data.results()[0].algorithms) {
    ++place;
    const auto put = [&](Series& to, const std::optional<double>& value) {
      if (!value) return;
      to.x.emplace_back(place);
      to.y.emplace_back(*value);
      to.labels.push_back(a.name);
    };
    put(most, a.exactness.max_abs_error);
    put(rms, a.exactness.rmse);
    put(limit, a.exactness.tolerance);
    chart.x.categories.push_back(a.name);
  }
  for (Series* series : {&limit, &most, &rms}) {
    if (!series->x.empty()) chart.series.push_back(std::move(*series));
  }
  chart.table = table_of_marks(chart);
  return chart;
}

}  // namespace

Drawn draw_error(const PlotData& data) {
  std::vector<Share> shares;
  std::string reason;
  bool any = false;
  for (const Result& r : data.results()) {
    for (const ResultAlgorithm& a : r.algorithms) {
      const ResultExactness& e = a.exactness;
      if (!e.max_abs_error && reason.empty()) reason = e.reason;
      any = any || e.max_abs_error;
      if (e.max_abs_error && e.tolerance && *e.max_abs_error > 0 && *e.tolerance > 0)
        shares.push_back({a.name, std::clamp(*e.max_abs_error / *e.tolerance, kLeastShare, kMostShare), ""});
    }
  }
  if (!any) return {{}, "no error was computed: " + (reason.empty() ? std::string("the file holds none") : reason)};
  Chart chart = data.results().size() > 1 && !shares.empty() ? histogram(data, shares) : errors_of_one(data);
  chart.boundary = "none: differences of outputs";
  chart.notes.emplace_back(
      "Results hold the largest error and the rms over the rows that were checked, not the error of "
      "each element, so there is no histogram over elements.");
  return {{std::move(chart)}, ""};
}

}  // namespace hbmscope::plot
