#include "plot/picture_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "analysis/power_law.hpp"
#include "plot/palette.hpp"
#include "report/format.hpp"

namespace hbmscope::plot {
namespace {

constexpr std::size_t kMostCommands = 3;

const ResultTraffic* with_bytes(const ResultTraffic* entry) {
  return entry != nullptr && entry->total ? entry : nullptr;
}

/// A word as a shell takes it back.
std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// Of a row of a sweep, which holds no command: what it ran over.
std::string sweep_words(const Result& r) {
  std::string names;
  for (const SweepPoint::Axis& axis : r.sweep->axes) names += (names.empty() ? "" : ", ") + axis.name;
  return "rows of hbmscope sweep over " + (names.empty() ? std::string("one point") : names);
}

std::vector<std::string> commands_of(const PlotData& data, const std::vector<std::size_t>& results) {
  std::vector<std::string> all;
  std::set<std::string> seen;
  bool unknown = false;
  for (const std::size_t i : results) {
    std::string command;
    for (std::string word : data.results()[i].argv) {
      if (command.empty()) word.erase(0, word.rfind('/') + 1);  // where the program lay says nothing
      command += (command.empty() ? "" : " ") + shell_word(word);
    }
    if (command.empty() && data.results()[i].sweep) command = sweep_words(data.results()[i]);
    unknown = unknown || command.empty();
    if (!command.empty() && seen.insert(command).second) all.push_back(std::move(command));
  }
  if (all.size() > kMostCommands) {
    const std::size_t more = all.size() - kMostCommands;
    all.resize(kMostCommands);
    all.push_back(fmt::format("(and {} more commands)", more));
  }
  if (unknown)
    all.emplace_back(all.empty() ? "the file does not hold the command that made it" : "the rest without its command");
  return all;
}

}  // namespace

std::string boundary_name(std::string_view boundary) {
  if (boundary == "l2_hbm") return "HBM";
  if (boundary == "sm_l2") return "SM-L2";
  return std::string(boundary);
}

const ResultTraffic* predicted(const ResultAlgorithm& a, std::string_view boundary) {
  if (boundary == "compulsory") return with_bytes(a.find(boundary, "formula"));
  if (boundary == "l2_hbm") return with_bytes(a.find(boundary, "simulated"));
  const ResultTraffic* exact_one = with_bytes(a.find(boundary, "closed_form"));
  return exact_one != nullptr ? exact_one : with_bytes(a.find(boundary, "simulated"));
}

const ResultTraffic* measured(const ResultAlgorithm& a, std::string_view boundary) {
  const ResultTraffic* counted = with_bytes(a.find(boundary, "hw_counter"));
  return counted != nullptr ? counted : with_bytes(a.find(boundary, "kernel_counter"));
}

std::string why_not_measured(const Result& result) {
  for (const ResultAlgorithm& a : result.algorithms) {
    for (const ResultTraffic& entry : a.traffic) {
      if (entry.measured() && !entry.total && !entry.reason.empty()) return entry.reason;
    }
    if (!a.time.measured_median_s && !a.time.reason.empty()) return a.time.reason;
  }
  return "the file holds no counters";
}

std::string why_no_hbm(const Result& result) {
  for (const ResultAlgorithm& a : result.algorithms) {
    const ResultTraffic* const entry = a.find("l2_hbm", "simulated");
    if (entry != nullptr && !entry->reason.empty()) return entry->reason;
  }
  return "the results hold closed forms alone; --engine sim simulates the L2";
}

std::vector<std::string> algorithm_names(const PlotData& data, const std::vector<std::size_t>& results) {
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  for (const std::size_t i : results) {
    for (const ResultAlgorithm& a : data.results()[i].algorithms) {
      if (seen.insert(a.name).second) names.push_back(a.name);
    }
  }
  return names;
}

Chart new_chart(std::string_view name, const PlotData& data, const std::vector<std::size_t>& results) {
  Chart chart;
  chart.picture = name;
  chart.question = picture(name).question;
  chart.commands = commands_of(data, results);
  for (const std::size_t i : results) {
    const AttentionShape& shape = *data.results()[i].shape;
    chart.size = std::max(chart.size, static_cast<double>(shape.seqlen_q) * static_cast<double>(shape.seqlen_kv));
  }
  chart.notes = data.notes();
  return chart;
}

std::vector<std::size_t> all_results(const PlotData& data) {
  std::vector<std::size_t> all(data.results().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

std::string exponent_note(const Series& series, std::string_view symbol) {
  std::vector<double> x, y;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    x.push_back(as_double(series.x[i]));
    y.push_back(as_double(series.y[i]));
  }
  const std::optional<PowerLaw> law = fit_power_law(x, y);
  if (!law) return {};
  if (!law->half_width) return fmt::format("{}^{:.2f} through two points", symbol, law->exponent);
  return fmt::format("{}^{:.2f} (95 %: {:.2f} to {:.2f})", symbol, law->exponent, law->exponent - *law->half_width,
                     law->exponent + *law->half_width);
}

std::string_view symbol_of(std::string_view field) {
  if (field == "seqlen") return "N";
  if (field == "head_dim") return "d";
  return "x";
}

Number x_of(const PlotData& data, const Grouped& by, std::size_t result) {
  const double x = *data.find(result, by.x)->number;
  constexpr double kExact = 9007199254740992.0;  // 2^53: up to here a double holds every whole number
  return x == std::floor(x) && std::abs(x) <= kExact ? Number(static_cast<std::int64_t>(x)) : Number(x);
}

Number y_of(const PlotData& data, const Grouped& by, std::size_t result, std::int64_t bytes) {
  const AttentionShape& shape = *data.results()[result].shape;
  if (!by.per_head) return bytes;
  return static_cast<double>(bytes) / (static_cast<double>(shape.batch) * static_cast<double>(shape.num_heads));
}

Table table_of_series(const Chart& chart) {
  Table table;
  table.by_series = true;
  const auto with_unit = [](const std::string& words, Unit unit) {
    const std::string_view unit_text = unit_name(unit);
    return unit_text.empty() ? words : fmt::format("{} [{}]", words, unit_text);
  };
  table.head.push_back(with_unit(chart.x.title, chart.x.unit));
  std::map<double, std::size_t> rows;
  for (const Series& series : chart.series) {
    for (const Number& x : series.x) rows.emplace(as_double(x), 0);
  }
  std::size_t next = 0;
  for (auto& [x, row] : rows) row = next++;
  table.rows.assign(rows.size(), std::vector<Cell>(1 + chart.series.size()));
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    const Series& series = chart.series[s];
    table.head.push_back(with_unit(series.name, chart.y.unit));
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      std::vector<Cell>& row = table.rows[rows[as_double(series.x[i])]];
      row[0] = series.x[i];
      Cell& cell = row[1 + s];
      if (std::holds_alternative<std::monostate>(cell)) {
        cell = series.y[i];
        continue;
      }
      // Several results at one x, of another batch size or a run repeated: a row for each.
      table.rows.emplace_back(1 + chart.series.size());
      table.rows.back()[0] = series.x[i];
      table.rows.back()[1 + s] = series.y[i];
    }
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const std::vector<Cell>& a, const std::vector<Cell>& b) {
    return as_double(std::get<Number>(a[0])) < as_double(std::get<Number>(b[0]));
  });
  return table;
}

Table table_of_marks(const Chart& chart) {
  Table table{{"series", "of", fmt::format("{} [{}]", chart.x.title, unit_name(chart.x.unit)),
               fmt::format("{} [{}]", chart.y.title, unit_name(chart.y.unit))},
              {}};
  for (const Series& series : chart.series) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      table.rows.push_back(
          {series.name, i < series.labels.size() ? series.labels[i] : std::string(), series.x[i], series.y[i]});
    }
  }
  return table;
}

Style algorithm_style(std::string_view algorithm) {
  constexpr std::array<Shape, 6> kShapes{Shape::circle,   Shape::square, Shape::diamond,
                                         Shape::triangle, Shape::wedge,  Shape::cross};
  const int index = colour_of_algorithm(algorithm);
  return {index, Line::solid, kShapes[static_cast<std::size_t>(index) % kShapes.size()], true};
}

}  // namespace hbmscope::plot
