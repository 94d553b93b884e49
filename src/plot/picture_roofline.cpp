#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "model/gpu_roofs.hpp"
#include "plot/palette.hpp"
#include "plot/picture_parts.hpp"
#include "report/format.hpp"

namespace hbmscope::plot {
namespace {

constexpr std::size_t kMostResultsHere = 500;  ///< a mark each for every algorithm; more would be a blot
constexpr int kL2Colour = 5;

double intensity_at(const ResultAlgorithm& a, std::string_view level) {
  for (const ResultIntensity& one : a.intensities) {
    if (one.level == level && one.flop_per_byte) return *one.flop_per_byte;
  }
  const ResultTraffic* bytes = predicted(a, level);
  if (bytes == nullptr || !a.matmul_flop || *bytes->total == 0) return 0;
  return static_cast<double>(*a.matmul_flop) / static_cast<double>(*bytes->total);
}

RoofDemand demand_of(const ResultAlgorithm& a) {
  const auto bytes = [&](std::string_view level) -> std::optional<double> {
    const double intensity = intensity_at(a, level);
    return intensity > 0 ? std::optional(static_cast<double>(*a.matmul_flop) / intensity) : std::nullopt;
  };
  return {static_cast<double>(a.matmul_flop.value_or(0)), bytes("l2_hbm"), bytes("sm_l2"),
          a.exp ? std::optional(static_cast<double>(*a.exp)) : std::nullopt};
}

/// Draws one GPU's and dtype's results under its roofs.
class Roofline {
 public:
  Roofline(const PlotData& data, const std::vector<std::size_t>& group, std::vector<std::string> varying)
      : data_(data), varying_(std::move(varying)), first_(data.results()[group[0]]) {
    const std::size_t step = (group.size() + kMostResultsHere - 1) / kMostResultsHere;
    for (std::size_t i = 0; i < group.size(); i += step) shown_.push_back(group[i]);
    chart_ = new_chart("roofline", data, group);
    if (step > 1)
      chart_.notes.push_back(fmt::format("Of {} results {} are drawn.",
                                         text::integer(static_cast<std::int64_t>(group.size())),
                                         text::integer(static_cast<std::int64_t>(shown_.size()))));
    for (const auto& [dtype, peak] : first_.gpu.peak_flop_per_s) {
      if (!std::isfinite(peak / bandwidth())) continue;  // of a foreign file
      if (dtype == own_dtype()) own_peak_ = peak;
      if (dtype == "bf16") bf16_peak_ = peak;
      std::string& names = peaks_[peak];
      names += (names.empty() ? "" : ", ") + dtype;
    }
    roofs_ = roofs_for({bandwidth(), own_peak_, bf16_peak_}, first_.gpu.measured_roofs);
    for (const GpuRoof& roof : roofs_) has_l2_ = has_l2_ || roof.resource == RoofResource::l2;
  }

  Chart chart() && {
    chart_.boundary = has_l2_ ? "HBM and SM-L2: FLOP over the bytes between L2 and HBM, and between SM and L2"
                              : "HBM: FLOP over the bytes between L2 and HBM";
    chart_.x = {has_l2_ ? "useful FLOP a byte of HBM, or of SM-L2" : "useful FLOP a byte of HBM", Unit::intensity,
                true};
    chart_.y = {"FLOP/s", Unit::flop_rate, true};
    for (const std::string& name : algorithm_names(data_, shown_)) {
      add_marks(name, "l2_hbm");
      if (has_l2_) add_marks(name, "sm_l2");
    }
    if (chart_.series.empty()) return std::move(chart_);
    add_table();
    add_roofs();
    add_notes();
    return std::move(chart_);
  }

 private:
  [[nodiscard]] double bandwidth() const { return *first_.gpu.hbm_bytes_per_s; }
  [[nodiscard]] std::string own_dtype() const { return std::string(info(first_.shape->dtype).name); }

  /// The marks of one algorithm at one boundary: predicted ones full, measured ones hollow.
  void add_marks(const std::string& name, std::string_view level) {
    const bool at_hbm = level == "l2_hbm";
    Series before{name + (at_hbm ? "" : " at SM-L2") + ", predicted", "", algorithm_style(name), {}, {}, {}};
    before.style.small = !at_hbm;
    Series after = before;
    before.style.line = after.style.line = Line::none;
    after.name = name + (at_hbm ? "" : " at SM-L2") + ", measured";
    after.style.filled = false;
    std::vector<std::optional<LowestRoof>> before_meets, after_meets;
    for (const std::size_t i : shown_) {
      const ResultAlgorithm* a = data_.results()[i].find(name);
      const double intensity = a == nullptr ? 0 : intensity_at(*a, level);
      if (intensity <= 0 || !a->matmul_flop || *a->matmul_flop == 0) continue;
      const std::optional<LowestRoof> lowest = lowest_roof(roofs_, demand_of(*a));
      const auto add = [&](Series& to, auto& meets, double rate) {
        if (!std::isfinite(rate)) return;  // a foreign file's time of next to nothing
        to.x.emplace_back(intensity);
        to.y.emplace_back(rate);
        to.labels.push_back(data_.label(i, varying_));
        meets.push_back(lowest);
      };
      if (a->time.predicted_s && *a->time.predicted_s > 0)
        add(before, before_meets, static_cast<double>(*a->matmul_flop) / *a->time.predicted_s);
      if (a->achieved_flop_per_s) add(after, after_meets, *a->achieved_flop_per_s);
    }
    const auto keep = [&](Series& series, const auto& meets) {
      if (series.x.empty()) return;
      chart_.series.push_back(std::move(series));
      meets_.insert(meets_.end(), meets.begin(), meets.end());
    };
    keep(before, before_meets);
    keep(after, after_meets);
  }

  /// The marks, and beside each the roof that its algorithm meets first.
  void add_table() {
    chart_.table = table_of_marks(chart_);
    chart_.table.head.insert(chart_.table.head.end(), {"lowest roof", "which allows [FLOP/s]"});
    for (std::size_t i = 0; i < meets_.size(); ++i) {
      std::vector<Cell>& row = chart_.table.rows[i];
      row.emplace_back(meets_[i] ? Cell(meets_[i]->roof->label) : Cell());
      row.emplace_back(meets_[i] ? Cell(Number(meets_[i]->flop_per_s)) : Cell());
    }
  }

  /// min(level, x * slope) within the drawing; a level alone where there is no slope.
  void add_roof(std::string name, std::string note, Style style, double slope, double level) {
    Series series{std::move(name), std::move(note), style, {}, {}, {}};
    const double meets = level / slope;
    for (const double x : {least_, std::clamp(meets, least_, most_), most_}) {
      if (!series.x.empty() && x <= as_double(series.x.back())) continue;
      series.x.emplace_back(x);
      series.y.emplace_back(std::min(level, x * slope));
    }
    roof_series_.push_back(std::move(series));
  }

  void add_roofs() {
    least_ = INFINITY;
    for (const Series& series : chart_.series) {
      for (const Number& x : series.x) {
        least_ = std::min(least_, as_double(x));
        most_ = std::max(most_, as_double(x));
      }
    }
    for (const auto& [peak, names] : peaks_) {
      most_ = std::max(most_, peak / bandwidth());
      least_ = std::min(least_, peak / bandwidth());
    }
    least_ /= 2;
    most_ *= 2;
    for (const auto& [peak, names] : peaks_) {
      const bool own = own_peak_ && peak >= *own_peak_ && peak <= *own_peak_;
      add_roof(names + " roof" + (own ? "" : ", another dtype"),
               fmt::format("{}, ridge at {} FLOP/B, datasheet", text::flop_rate({peak}),
                           text::intensity({peak / bandwidth()})),
               {own ? kInk : kGrey, own ? Line::solid : Line::dashed, Shape::none, true}, bandwidth(), peak);
    }
    double highest = own_peak_.value_or(0);
    for (const GpuRoof& roof : roofs_) {
      if (roof.measured && roof.resource == RoofResource::matmul) highest = std::max(highest, roof.rate);
    }
    for (const GpuRoof& roof : roofs_) {
      if (!roof.measured || !std::isfinite(roof.rate / bandwidth())) continue;
      const std::string rate = text::roof_rate(roof) + ", measured";
      const Style style{roof.resource == RoofResource::l2 ? kL2Colour : kGrey,
                        roof.resource == RoofResource::l2 ? Line::dashed : Line::dotted, Shape::none, true};
      if (roof.resource == RoofResource::exp) {
        add_exp_roofs(roof, rate, style);
      } else if (roof.resource == RoofResource::matmul) {
        add_roof(roof.label + " roof", rate, style, bandwidth(), roof.rate);
      } else if (highest > 0) {
        add_roof(roof.label + " roof", rate, style, roof.rate, highest);
      }
    }
    chart_.series.insert(chart_.series.begin(), roof_series_.begin(), roof_series_.end());
  }

  /// Exponentials are a level in FLOP/s, by how many useful FLOP there are to each: the head dimension tells.
  void add_exp_roofs(const GpuRoof& roof, const std::string& rate, const Style& style) {
    std::map<double, std::string> levels;
    for (const std::size_t i : shown_) {
      for (const ResultAlgorithm& a : data_.results()[i].algorithms) {
        const std::optional<double> level = allowed_flop_per_s(roof, demand_of(a));
        if (level && std::isfinite(*level)) levels.emplace(*level, text::integer(data_.results()[i].shape->head_dim));
      }
    }
    constexpr std::size_t kMostLevels = 4;
    if (levels.size() > kMostLevels)
      chart_.notes.push_back(fmt::format("Of {} levels of exp2 the lowest {} are drawn.", levels.size(), kMostLevels));
    std::size_t drawn = 0;
    for (const auto& [level, head_dim] : levels) {
      if (drawn++ == kMostLevels) break;
      add_roof(fmt::format("{} roof, d {}", roof.label, head_dim),
               fmt::format("{} = {} here", rate, text::flop_rate({level})), style, bandwidth(), level);
    }
  }

  void add_notes() {
    chart_.notes.push_back(fmt::format(
        "Roofs of the {} by its datasheet: HBM {}, and the dense matmul rate of each dtype. Predicted: useful "
        "FLOP over predicted time, so that padding and launches count.",
        first_.gpu.name, text::byte_rate({bandwidth()})));
    if (first_.gpu.measured_roofs.empty()) {
      chart_.notes.emplace_back(
          "The roofs of the L2, of exponentials and of instructions are not known here: gpu probe measures them, and "
          "--roofs takes them.");
    } else {
      chart_.notes.emplace_back(
          "Measured roofs are those of gpu probe. A mark at SM-L2 belongs under the L2's roof, which is of reads while "
          "the bytes are reads and writes; predicted times leave the L2 out, so a predicted mark may stand above it. "
          "The "
          "table names the roof that each algorithm meets first; a resource counts by "
          "its highest measured roof.");
      if (shown_.size() == 1) add_lowest();
    }
    if (!has_l2_ && !first_.gpu.measured_roofs.empty())
      chart_.notes.emplace_back("The L2's roof is not known: it was not measured.");
    const bool any = std::any_of(chart_.series.begin(), chart_.series.end(),
                                 [](const Series& series) { return series.name.ends_with(", measured"); });
    if (!any) chart_.notes.push_back("No measured marks: " + why_not_measured(first_) + ".");
  }

  void add_lowest() {
    std::string words;
    for (const ResultAlgorithm& a : first_.algorithms) {
      const std::optional<LowestRoof> lowest = lowest_roof(roofs_, demand_of(a));
      if (lowest)
        words += fmt::format("{}{} meets {} first, at {}", words.empty() ? "" : "; ", a.name, lowest->roof->label,
                             text::flop_rate({lowest->flop_per_s}));
    }
    if (!words.empty()) chart_.notes.push_back(words + ".");
  }

  const PlotData& data_;
  std::vector<std::string> varying_;
  const Result& first_;
  std::vector<std::size_t> shown_;
  Chart chart_;
  std::map<double, std::string> peaks_;  ///< and their dtypes: fp16 and bf16 often share one
  std::optional<double> own_peak_, bf16_peak_;
  std::vector<GpuRoof> roofs_;
  bool has_l2_ = false;
  std::vector<std::optional<LowestRoof>> meets_;  ///< by mark, in the order of the table
  std::vector<Series> roof_series_;
  double least_ = 0, most_ = 0;
};

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
    Chart chart = Roofline(data, group, varying).chart();
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
