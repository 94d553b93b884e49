#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "plot/palette.hpp"
#include "plot/picture_parts.hpp"
#include "report/format.hpp"

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

Chart histogram_of_largest(const PlotData& data, const std::vector<Share>& shares) {
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

/// The bins of all algorithms of a result, in their order: those edges that any of them has.
std::vector<Bin> bins_of(const std::vector<const ResultAlgorithm*>& algorithms) {
  std::map<double, double> edges;
  for (const ResultAlgorithm* a : algorithms) {
    for (const ResultErrors::Bin& bin : a->exactness.errors->bins) edges.emplace(bin.from, bin.to);
  }
  std::vector<Bin> bins;
  for (const auto& [from, to] : edges) bins.push_back({from, to, std::vector<std::int64_t>(algorithms.size(), 0)});
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    for (const ResultErrors::Bin& bin : algorithms[i]->exactness.errors->bins) {
      const auto at = std::find_if(bins.begin(), bins.end(), [&](const Bin& one) { return one.from >= bin.from; });
      at->counts[i] += bin.elements;
    }
  }
  return bins;
}

/// Of one result: how many elements of O have which error, the algorithms side by side. Nothing where the file has no
/// errors of elements.
std::optional<Chart> histogram_of_elements(const PlotData& data, std::size_t result) {
  std::vector<const ResultAlgorithm*> algorithms;
  for (const ResultAlgorithm& a : data.results()[result].algorithms) {
    if (a.exactness.errors && !a.exactness.errors->bins.empty()) algorithms.push_back(&a);
  }
  if (algorithms.empty()) return std::nullopt;
  Chart chart = new_chart("error", data, {result});
  chart.kind = Kind::histogram;
  chart.side_by_side = true;
  chart.x = {"error of an element of O against fp64", Unit::plain, true};
  chart.y = {"elements", Unit::plain, false};
  chart.bins = bins_of(algorithms);
  chart.table.head = {"error, from", "to below"};
  std::vector<Cell> exact_row{Number(std::int64_t{0}), Number(std::int64_t{0})};
  std::string exact_words, largest;
  for (const ResultAlgorithm* a : algorithms) {
    const std::int64_t exact = a->exactness.errors->exact;
    chart.series.push_back({a->name, "", algorithm_style(a->name), {}, {}, {}});
    chart.table.head.push_back(a->name + " [elements]");
    exact_row.emplace_back(Number(exact));
    exact_words += fmt::format("{}{} {}", exact_words.empty() ? "" : ", ", a->name, text::integer(exact));
    if (a->exactness.max_abs_error && a->exactness.tolerance)
      largest += fmt::format("{}{} {} of {}", largest.empty() ? "" : ", ", a->name,
                             text::scientific(*a->exactness.max_abs_error), text::scientific(*a->exactness.tolerance));
  }
  chart.table.rows.push_back(std::move(exact_row));
  for (const Bin& bin : chart.bins) {
    std::vector<Cell> row{Number(bin.from), Number(bin.to)};
    for (const std::int64_t count : bin.counts) row.emplace_back(Number(count));
    chart.table.rows.push_back(std::move(row));
  }
  chart.notes.push_back("Elements without any error, which have no place on this axis: " + exact_words + ".");
  if (!largest.empty()) chart.notes.push_back("Largest error of the tolerance for it: " + largest + ".");
  if (const auto rows = algorithms[0]->exactness.rows_checked)
    chart.notes.push_back(fmt::format("Elements of the {} rows that were checked.", text::integer(*rows)));
  return chart;
}

/// Of a single result: its largest error, its rms and the tolerance, an algorithm after the other.
Chart errors_of_one(const PlotData& data) {
  Chart chart = new_chart("error", data, {0});
  chart.notes.emplace_back(
      "These results hold the largest error and the rms over the rows that were checked, not the errors of elements, "
      "which were not kept when they were saved: no histogram over elements.");
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
  Drawn drawn;
  const bool many = data.results().size() > 1;
  if (many && !shares.empty()) {
    drawn.charts.push_back(histogram_of_largest(data, shares));
    drawn.charts.back().variant = "all results, their largest errors";
  }
  for (std::size_t i = 0; i < data.results().size() && drawn.charts.size() < kMostCharts; ++i) {
    std::optional<Chart> chart = histogram_of_elements(data, i);
    if (!chart) continue;
    if (many) chart->variant = data.label(i, data.varying());
    drawn.charts.push_back(std::move(*chart));
  }
  if (drawn.charts.empty()) drawn.charts.push_back(errors_of_one(data));
  if (drawn.charts.size() == 1 && many && !shares.empty()) {
    drawn.charts[0].variant.clear();
    drawn.charts[0].notes.emplace_back(
        "These results do not hold the errors of elements, which were not kept when they were saved: no histogram over "
        "elements.");
  }
  for (Chart& chart : drawn.charts) chart.boundary = "none: differences of outputs";
  return drawn;
}

}  // namespace hbmscope::plot
