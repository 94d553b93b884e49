#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "model/memory.hpp"
#include "model/plan_choice.hpp"
#include "plot/palette.hpp"
#include "plot/picture_parts.hpp"

namespace hbmscope::plot {
namespace {

/// A smooth line needs no more points, and a page already has all results in the table of its sweep.
constexpr std::size_t kMostPoints = 1000;

Chart empty_chart(const PlotData& data, const std::vector<std::size_t>& results, std::string_view x) {
  Chart chart = new_chart("memory", data, results);
  chart.boundary = "none: bytes that lie in HBM beside inputs and outputs, not bytes that move";
  chart.x = {axis_title(x), axis_unit(x), true};
  chart.y = {"intermediates", Unit::bytes, true};
  return chart;
}

void add_line(Chart& chart, Series series, std::string_view symbol) {
  if (series.x.empty()) return;
  series.note = exponent_note(series, symbol);
  chart.series.push_back(std::move(series));
}

/// What one result's algorithms keep at other lengths: computed, as the result has one length only.
Chart computed(const PlotData& data, std::size_t index) {
  const Result& r = data.results()[index];
  Chart chart = empty_chart(data, {index}, "seqlen");
  chart.variant = data.label(index, data.varying());
  for (const ResultAlgorithm& one : r.algorithms) {
    const auto known =
        std::find_if(algorithms().begin(), algorithms().end(), [&](const Algorithm& a) { return a.name == one.name; });
    if (known == algorithms().end()) continue;
    Series series{one.name, "", algorithm_style(one.name), {}, {}, {}};
    for (std::int64_t N = 256; N <= (std::int64_t{1} << 20); N *= 2) {
      AttentionShape shape = *r.shape;
      if (shape.seqlen_q == shape.seqlen_kv) shape.seqlen_q = N;
      shape.seqlen_kv = N;
      shape.kv_lengths.clear();
      try {
        const TilePlan plan = choose_plan(*known, shape, {}, Bytes(r.gpu.smem_per_block_bytes.value_or(232448)));
        series.x.emplace_back(N);
        series.y.emplace_back(memory_ledger(*known, shape, plan).intermediate_bytes.value());
      } catch (const Error&) {
        series.x.resize(series.y.size());  // beyond 64 bits: the line ends here
        break;
      }
    }
    add_line(chart, std::move(series), "N");
  }
  if (r.shape->seqlen_kv >= 256) chart.references.push_back({static_cast<double>(r.shape->seqlen_kv), "this result"});
  chart.notes.emplace_back("The result has one length; the lines are the model's ledger for this shape at others.");
  return chart;
}

Chart from_results(const PlotData& data, const Grouped& by, const Group& group) {
  Chart chart = empty_chart(data, group.results, by.x);
  chart.variant = group.label;
  if (by.per_head) chart.y.title = "intermediates for one batch entry and head";
  const std::size_t step = (group.results.size() + kMostPoints - 1) / kMostPoints;
  if (step > 1) chart.notes.push_back(fmt::format("Of {} results one in {} is drawn.", group.results.size(), step));
  for (const std::string& name : algorithm_names(data, group.results)) {
    const Series empty{name, "", algorithm_style(name), {}, {}, {}};
    Series ledger = empty, peak = empty;
    peak.name = name + ", measured peak of the device";
    peak.style.line = Line::none;
    peak.style.filled = false;
    for (std::size_t at_result = 0; at_result < group.results.size(); at_result += step) {
      const std::size_t i = group.results[at_result];
      const ResultAlgorithm* a = data.results()[i].find(name);
      if (a == nullptr) continue;
      const auto put = [&](Series& to, std::int64_t bytes) {
        to.x.push_back(x_of(data, by, i));
        to.y.push_back(y_of(data, by, i, bytes));
      };
      if (a->memory.intermediate_bytes) put(ledger, *a->memory.intermediate_bytes);
      if (a->memory.measured_peak_bytes) put(peak, *a->memory.measured_peak_bytes);
    }
    add_line(chart, std::move(ledger), symbol_of(by.x));
    add_line(chart, std::move(peak), symbol_of(by.x));
  }
  if (by.per_head) chart.notes.emplace_back("Batch and heads change along the lines, so bytes are divided by both.");
  chart.notes.emplace_back("The measured peak holds inputs and outputs too.");
  return chart;
}

}  // namespace

Drawn draw_memory(const PlotData& data) {
  Drawn drawn;
  const std::optional<Grouped> by = grouped(data);
  if (by) {
    for (const Group& group : by->groups) {
      if (drawn.charts.size() == kMostCharts) break;
      if (*data.find(group.results.front(), by->x)->number < *data.find(group.results.back(), by->x)->number)
        drawn.charts.push_back(from_results(data, *by, group));
    }
  }
  if (drawn.charts.empty()) drawn.charts.push_back(computed(data, 0));
  std::erase_if(drawn.charts, [](const Chart& chart) { return chart.series.empty(); });
  for (Chart& chart : drawn.charts) {
    chart.table = table_of_series(chart);
    for (const Series& series : chart.series) {
      if (std::any_of(series.y.begin(), series.y.end(), [](const Number& y) { return as_double(y) > 0; })) continue;
      chart.notes.push_back(series.name + " keeps nothing, for which a logarithmic axis has no place.");
    }
  }
  if (drawn.charts.empty()) drawn.reason = "the results hold no memory";
  return drawn;
}

}  // namespace hbmscope::plot
