#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plot/palette.hpp"
#include "plot/picture_parts.hpp"
#include "report/format.hpp"

namespace hbmscope::plot {
namespace {

constexpr std::size_t kMostResultsHere = 500;  ///< a mark each for every algorithm; more would be a blot

double intensity_at(const ResultAlgorithm& a, std::string_view level) {
  for (const ResultIntensity& one : a.intensities) {
    if (one.level == level && one.flop_per_byte) return *one.flop_per_byte;
  }
  const ResultTraffic* bytes = predicted(a, level);
  if (bytes == nullptr || !a.matmul_flop || *bytes->total == 0) return 0;
  return static_cast<double>(*a.matmul_flop) / static_cast<double>(*bytes->total);
}

/// The marks of one algorithm: predicted ones full, measured ones hollow.
void add_marks(Chart& chart, const PlotData& data, const std::vector<std::size_t>& results, const std::string& name,
               const std::vector<std::string>& varying) {
  Series before{name + ", predicted", "", algorithm_style(name), {}, {}, {}}, after = before;
  before.style.line = after.style.line = Line::none;
  after.name = name + ", measured";
  after.style.filled = false;
  for (const std::size_t i : results) {
    const ResultAlgorithm* a = data.results()[i].find(name);
    const double intensity = a == nullptr ? 0 : intensity_at(*a, "l2_hbm");
    if (intensity <= 0 || !a->matmul_flop || *a->matmul_flop == 0) continue;
    const auto add = [&](Series& to, double rate) {
      if (!std::isfinite(rate)) return;  // a foreign file's time of next to nothing
      to.x.emplace_back(intensity);
      to.y.emplace_back(rate);
      to.labels.push_back(data.label(i, varying));
    };
    if (a->time.predicted_s && *a->time.predicted_s > 0)
      add(before, static_cast<double>(*a->matmul_flop) / *a->time.predicted_s);
    if (a->achieved_flop_per_s) add(after, *a->achieved_flop_per_s);
  }
  for (Series* series : {&before, &after}) {
    if (!series->x.empty()) chart.series.push_back(std::move(*series));
  }
}

/// min(peak, intensity * bandwidth) from end to end.
Series roof(const ResultGpu& gpu, const std::string& dtype, double peak, double from, double to, bool own) {
  const double bandwidth = *gpu.hbm_bytes_per_s, ridge = peak / bandwidth;
  Series series{fmt::format("{} roof{}", dtype, own ? "" : ", another dtype"),
                fmt::format("{}, ridge at {} FLOP/B", text::flop_rate({peak}), text::intensity({ridge})),
                {own ? kInk : kGrey, own ? Line::solid : Line::dashed, Shape::none, true},
                {},
                {},
                {}};
  for (const double x : {from, ridge, to}) {
    if (x < from || x > to) continue;
    series.x.emplace_back(x);
    series.y.emplace_back(std::min(peak, x * bandwidth));
  }
  return series;
}

Chart roofline_chart(const PlotData& data, const std::vector<std::size_t>& group,
                     const std::vector<std::string>& varying) {
  const Result& first = data.results()[group[0]];
  const ResultGpu& gpu = first.gpu;
  std::vector<std::size_t> shown;
  const std::size_t step = (group.size() + kMostResultsHere - 1) / kMostResultsHere;
  for (std::size_t i = 0; i < group.size(); i += step) shown.push_back(group[i]);
  Chart chart = new_chart("roofline", data, group);
  if (step > 1)
    chart.notes.push_back(fmt::format("Of {} results {} are drawn.",
                                      text::integer(static_cast<std::int64_t>(group.size())),
                                      text::integer(static_cast<std::int64_t>(shown.size()))));
  chart.boundary = "HBM: FLOP over the bytes between L2 and HBM";
  chart.x = {"useful FLOP a byte of HBM", Unit::intensity, true};
  chart.y = {"FLOP/s", Unit::flop_rate, true};
  for (const std::string& name : algorithm_names(data, shown)) add_marks(chart, data, shown, name, varying);
  if (chart.series.empty()) return chart;
  chart.table = table_of_marks(chart);
  double least = INFINITY, most = 0;
  for (const Series& series : chart.series) {
    for (const Number& x : series.x) {
      least = std::min(least, as_double(x));
      most = std::max(most, as_double(x));
    }
  }
  const std::string own(info(first.shape->dtype).name);
  std::vector<Series> roofs;
  std::map<double, std::string> peaks;  // fp16 and bf16 often share one
  double own_peak = 0;
  for (const auto& [dtype, peak] : gpu.peak_flop_per_s) {
    if (!std::isfinite(peak / *gpu.hbm_bytes_per_s)) continue;  // of a foreign file
    std::string& names = peaks[peak];
    names += (names.empty() ? "" : ", ") + dtype;
    if (dtype == own) own_peak = peak;
    most = std::max(most, peak / *gpu.hbm_bytes_per_s);
    least = std::min(least, peak / *gpu.hbm_bytes_per_s);
  }
  least /= 2;
  most *= 2;
  for (const auto& [peak, names] : peaks)
    roofs.push_back(roof(gpu, names, peak, least, most, peak >= own_peak && peak <= own_peak));
  chart.series.insert(chart.series.begin(), roofs.begin(), roofs.end());
  chart.notes.push_back(
      fmt::format("Roofs of the {}: HBM {}, and the dense matmul rate of each dtype. Predicted: useful "
                  "FLOP over predicted time, so that padding and launches count.",
                  gpu.name, text::byte_rate({*gpu.hbm_bytes_per_s})));
  chart.notes.emplace_back("The L2's own bandwidth is no roof here: results do not hold it (gpu probe measures it).");
  const bool any = std::any_of(chart.series.begin(), chart.series.end(),
                               [](const Series& series) { return series.name.ends_with(", measured"); });
  if (!any) chart.notes.push_back("No measured marks: " + why_not_measured(first) + ".");
  return chart;
}

}  // namespace

Drawn draw_roofline(const PlotData& data) {
  // A roof is of one GPU and one dtype.
  std::vector<std::pair<std::string, std::vector<std::size_t>>> groups;
  for (std::size_t i = 0; i < data.results().size(); ++i) {
    const Result& r = data.results()[i];
    if (!r.gpu.hbm_bytes_per_s || r.gpu.peak_flop_per_s.empty()) continue;
    const std::string key = r.gpu.name + ", " + std::string(info(r.shape->dtype).name);
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == key; });
    if (found == groups.end()) {
      groups.emplace_back(key, std::vector<std::size_t>{i});
    } else {
      found->second.push_back(i);
    }
  }
  std::vector<std::string> varying = data.varying();
  std::erase(varying, "gpu");
  std::erase(varying, "dtype");
  Drawn drawn;
  for (const auto& [key, group] : groups) {
    Chart chart = roofline_chart(data, group, varying);
    if (groups.size() > 1) chart.variant = key;
    if (!chart.series.empty() && drawn.charts.size() < kMostCharts) drawn.charts.push_back(std::move(chart));
  }
  if (drawn.charts.empty()) {
    drawn.reason =
        groups.empty()
            ? "the file does not hold the GPU's bandwidth and peak rates, which run --json and sweep --full write"
            : "no algorithm has bytes through HBM and a time; run with --engine sim or more";
  }
  return drawn;
}

}  // namespace hbmscope::plot
