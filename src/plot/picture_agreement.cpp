#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plot/palette.hpp"
#include "plot/picture_parts.hpp"

namespace hbmscope::plot {

Drawn draw_agreement(const PlotData& data) {
  Chart chart = new_chart("agreement", data, all_results(data));
  chart.boundary = "HBM and SM-L2, as the names say";
  chart.x = {"predicted bytes", Unit::bytes, true};
  chart.y = {"measured bytes", Unit::bytes, true};
  const std::vector<std::string> varying = data.varying();
  double least = INFINITY, most = 0, farthest = 1;
  for (const char* boundary : {"l2_hbm", "sm_l2"}) {
    for (const std::string& name : algorithm_names(data, all_results(data))) {
      Series series{name + " at " + boundary_name(boundary), "", algorithm_style(name), {}, {}, {}};
      series.style.line = Line::none;
      series.style.filled = boundary == std::string_view("sm_l2");
      double worst = 1;
      for (std::size_t i = 0; i < data.results().size(); ++i) {
        const ResultAlgorithm* a = data.results()[i].find(name);
        const ResultTraffic* before = a == nullptr ? nullptr : predicted(*a, boundary);
        const ResultTraffic* after = a == nullptr ? nullptr : measured(*a, boundary);
        if (before == nullptr || after == nullptr || *before->total == 0 || *after->total == 0) continue;
        series.x.emplace_back(*before->total);
        series.y.emplace_back(*after->total);
        series.labels.push_back(data.label(i, varying));
        const double x = as_double(series.x.back()), y = as_double(series.y.back());
        least = std::min({least, x, y});
        most = std::max({most, x, y});
        worst = std::abs(std::log(y / x)) > std::abs(std::log(worst)) ? y / x : worst;
      }
      if (series.x.empty()) continue;
      farthest = std::abs(std::log(worst)) > std::abs(std::log(farthest)) ? worst : farthest;
      series.note = fmt::format("farthest off: measured / predicted {:.3f}", worst);
      chart.series.push_back(std::move(series));
    }
  }
  if (chart.series.empty()) return {{}, "nothing was measured: " + why_not_measured(data.results()[0])};
  chart.table = table_of_marks(chart);
  chart.notes.emplace_back("A mark on the line is a result whose counters say what was predicted.");
  chart.series.insert(
      chart.series.begin(),
      {"measured = predicted", "", {kInk, Line::dotted, Shape::none, true}, {least, most}, {least, most}, {}});
  return {{std::move(chart)}, ""};
}

}  // namespace hbmscope::plot
