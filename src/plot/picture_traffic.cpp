#include <fmt/format.h>

#include <algorithm>

#include "plot/palette.hpp"
#include "plot/picture_parts.hpp"

namespace hbmscope::plot {
namespace {

/// Tensors in the order of the model, which is about that of their use; others behind them.
std::vector<TensorBytes> in_order(std::vector<TensorBytes> tensors) {
  const auto place = [](const TensorBytes& tensor) {
    const auto found =
        std::find_if(kTensors.begin(), kTensors.end(), [&](const TensorInfo& one) { return one.name == tensor.name; });
    return found - kTensors.begin();
  };
  std::stable_sort(tensors.begin(), tensors.end(),
                   [&](const TensorBytes& a, const TensorBytes& b) { return place(a) < place(b); });
  return tensors;
}

std::string witness(const ResultTraffic& entry) {
  if (entry.provenance == "hw_counter") return "measured";
  if (entry.provenance == "kernel_counter") return "counted by the kernel";
  return "predicted";
}

Bar bar_of(const ResultAlgorithm& a, const ResultTraffic& entry) {
  const std::string name =
      entry.boundary == "compulsory" ? "compulsory" : boundary_name(entry.boundary) + ", " + witness(entry);
  Bar bar{a.name, name, entry.measured() ? "measured" : "predicted", {}, *entry.total, {}, {}};
  if (entry.least) bar.least = *entry.least;
  if (entry.most) bar.most = *entry.most;
  if (!entry.tensors) {
    bar.segments.push_back({"not told apart by tensor", *entry.total, kGrey, true});
    return bar;
  }
  for (const TensorBytes& tensor : in_order(*entry.tensors)) {
    if (tensor.read + tensor.write > 0)
      bar.segments.push_back({tensor.name, tensor.read + tensor.write, colour_of_tensor(tensor.name)});
  }
  return bar;
}

Chart traffic_chart(const PlotData& data, std::size_t index, const std::vector<std::string>& varying) {
  const Result& r = data.results()[index];
  Chart chart = new_chart("traffic", data, {index});
  chart.kind = Kind::bars;
  chart.variant = data.label(index, varying);
  chart.boundary =
      "HBM: between L2 and HBM; SM-L2: every tile that a kernel loads or stores; compulsory: inputs and "
      "outputs once";
  chart.x = {"bytes read and written", Unit::bytes, false};
  chart.table.head = {"algorithm", "boundary", "tensor", "provenance", "bytes [B]"};
  bool any_measured = false, any_whisker = false, any_hbm = false;
  for (const ResultAlgorithm& a : r.algorithms) {
    std::vector<const ResultTraffic*> entries{predicted(a, "compulsory")};
    for (const char* boundary : {"l2_hbm", "sm_l2"}) {
      entries.push_back(predicted(a, boundary));
      entries.push_back(measured(a, boundary));
    }
    for (const ResultTraffic* entry : entries) {
      if (entry == nullptr) continue;
      chart.bars.push_back(bar_of(a, *entry));
      const Bar& bar = chart.bars.back();
      any_measured = any_measured || entry->measured();
      any_whisker = any_whisker || bar.least;
      any_hbm = any_hbm || entry->boundary == "l2_hbm";
      for (const Segment& segment : bar.segments) {
        chart.table.rows.push_back({a.name, boundary_name(entry->boundary), segment.hatched ? "all" : segment.name,
                                    entry->provenance, segment.value});
      }
    }
  }
  if (any_whisker)
    chart.notes.emplace_back("A line across a bar's end: the paces at which CTAs may run, simulated each.");
  if (!any_hbm) chart.notes.push_back("No bytes through HBM: " + why_no_hbm(r) + ".");
  if (!any_measured) chart.notes.push_back("No measured bars: " + why_not_measured(r) + ".");
  return chart;
}

}  // namespace

Drawn draw_traffic(const PlotData& data) {
  Drawn drawn;
  const std::vector<std::string> varying = data.varying();
  for (std::size_t i = 0; i < data.results().size() && drawn.charts.size() < kMostCharts; ++i) {
    Chart chart = traffic_chart(data, i, varying);
    if (!chart.bars.empty()) drawn.charts.push_back(std::move(chart));
  }
  if (drawn.charts.empty()) drawn.reason = "no algorithm has bytes";
  if (data.results().size() > kMostCharts) {
    for (Chart& chart : drawn.charts)
      chart.notes.push_back(fmt::format("Of {} results the first {} can be picked here; --where picks others.",
                                        data.results().size(), kMostCharts));
  }
  return drawn;
}

}  // namespace hbmscope::plot
