#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/traffic_by_sram.hpp"
#include "model/paper.hpp"
#include "plot/palette.hpp"
#include "plot/picture_parts.hpp"
#include "report/format.hpp"
#include "scenario/gpu_file.hpp"

namespace hbmscope::plot {
namespace {

constexpr std::size_t kMostShapes = 12;  ///< a curve is computed, not read

/// Powers of two and two steps between, from 8 KiB to 128 MiB: from less than any SMEM to more than any L2.
std::vector<Bytes> memories() {
  std::vector<Bytes> all;
  for (std::int64_t power = std::int64_t{8} << 10; power <= (std::int64_t{128} << 20); power *= 2) {
    all.emplace_back(power);
    if (power == (std::int64_t{128} << 20)) break;
    all.emplace_back(power / 3 * 4);
    all.emplace_back(power / 5 * 8);
  }
  return all;
}

/// "SMEM H100 SXM, H200": the GPUs of one size share a line.
std::vector<Reference> gpu_sizes() {
  std::map<std::int64_t, std::string> smem, l2;
  const auto add = [](std::map<std::int64_t, std::string>& to, Bytes size, const std::string& name) {
    std::string& names = to[size.value()];
    names += (names.empty() ? "" : ", ") + name;
  };
  for (const GpuSpec& gpu : embedded_gpus_parsed()) {
    add(smem, gpu.smem_per_block_bytes, gpu.name);
    add(l2, gpu.l2_bytes, gpu.name);
  }
  std::vector<Reference> all;
  for (const auto& [size, names] : smem) all.push_back({static_cast<double>(size), "SMEM " + names});
  for (const auto& [size, names] : l2) all.push_back({static_cast<double>(size), "L2 " + names});
  return all;
}

Chart sram_chart(const PlotData& data, std::size_t index, const std::vector<std::string>& varying) {
  const Result& r = data.results()[index];
  const AttentionShape& shape = *r.shape;
  Chart chart = new_chart("sram", data, {index});
  chart.variant = data.label(index, varying);
  chart.boundary = "SM-L2: the papers' two levels, a fast memory of M bytes and all the rest";
  chart.x = {"M, bytes on chip for one tile", Unit::binary_bytes, true};
  chart.y = {"bytes read and written", Unit::bytes, true};
  const std::vector<Bytes> srams = memories();
  for (const ResultAlgorithm& one : r.algorithms) {
    const auto known =
        std::find_if(algorithms().begin(), algorithms().end(), [&](const Algorithm& a) { return a.name == one.name; });
    if (known == algorithms().end() || known->pass == Pass::backward) continue;
    Series series{one.name, "", algorithm_style(one.name), {}, {}, {}};
    for (const SramPoint& point : traffic_by_sram(*known, shape, srams)) {
      series.x.emplace_back(point.sram.value());
      series.y.emplace_back(point.traffic.value());
    }
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) return chart;
  Series least{"compulsory", "inputs and outputs once", {kGrey, Line::dotted, Shape::none, true}, {}, {}, {}};
  Series order{
      "lower-bound order", "Saha and Ye 2024, constant 1", {kInk, Line::dashed, Shape::none, true}, {}, {}, {}};
  const std::int64_t compulsory = compulsory_bytes(shape, Pass::forward).value();
  for (const Bytes sram : srams) {
    least.x.emplace_back(sram.value());
    least.y.emplace_back(compulsory);
    // The theorem is about memories that hold a row and not a whole tensor.
    const double M = sram.as_double() / static_cast<double>(shape.element_bytes()),
                 d = static_cast<double>(shape.head_dim);
    if (M < d || M > d * static_cast<double>(std::min(shape.seqlen_q, shape.seqlen_kv))) continue;
    order.x.emplace_back(sram.value());
    order.y.emplace_back(paper_claims(shape, sram).lower_bound_elements * static_cast<double>(shape.element_bytes()));
  }
  chart.series.push_back(std::move(least));
  if (!order.x.empty()) {
    chart.notes.emplace_back(
        "Order: min(N^2 d / sqrt(M), N^2 d^2 / M) for d <= M <= N d, of which the constant is unknown: its "
        "slope can be read, its height cannot.");
    chart.series.push_back(std::move(order));
  }
  chart.references = gpu_sizes();
  chart.table = table_of_series(chart);
  chart.notes.emplace_back(
      "Computed for this shape by closed forms. naive reads each operand of a kernel once, whatever M "
      "is; flash_v1 takes Algorithm 1's blocks; the others 16 keys and as many query rows as fit.");
  return chart;
}

}  // namespace

Drawn draw_sram(const PlotData& data) {
  Drawn drawn;
  const std::vector<std::string> varying = data.varying();
  std::vector<AttentionShape> seen;
  bool too_long = false;
  for (std::size_t i = 0; i < data.results().size() && drawn.charts.size() < kMostShapes; ++i) {
    const AttentionShape& shape = *data.results()[i].shape;
    if (std::find(seen.begin(), seen.end(), shape) != seen.end()) continue;
    seen.push_back(shape);
    if (seen.size() > 4 * kMostShapes) break;
    if (std::max(shape.seqlen_q, shape.seqlen_kv) > kMaxSeqlenBySram) {
      too_long = true;
      continue;
    }
    Chart chart = sram_chart(data, i, varying);
    if (!chart.series.empty()) drawn.charts.push_back(std::move(chart));
  }
  if (drawn.charts.empty()) {
    drawn.reason = too_long ? fmt::format("no shape is short enough: curves are computed up to N = {}",
                                          text::integer(kMaxSeqlenBySram))
                            : "no result has a forward algorithm that the model knows";
  }
  return drawn;
}

}  // namespace hbmscope::plot
