#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/run_roofs.hpp"
#include "report/format.hpp"
#include "report/run_sections.hpp"

namespace hbmscope {
namespace {

TextBar bar_of(std::string label, const Traffic& traffic) {
  const ReadWrite sum = traffic.sum();
  return {std::move(label), sum.read.as_double(), sum.write.as_double(), text::bytes(sum.total())};
}

/// What is predicted at a boundary, and under it what was counted on a GPU.
std::vector<TextBar> bars_at(const RunResult& r, Boundary boundary) {
  std::vector<TextBar> bars;
  for (const AlgorithmResult& a : r.algorithms) {
    const TrafficEntry* const entry = a.at(boundary);
    if (entry == nullptr || !entry->traffic) continue;
    bars.push_back(bar_of(std::string(a.algorithm->name), *entry->traffic));
    const TrafficEntry* const counted = a.find(boundary, Provenance::hw_counter);
    if (counted != nullptr && counted->traffic) bars.push_back(bar_of("  counted", *counted->traffic));
  }
  return bars;
}

void append_bars(Document& out, const RunResult& r, Boundary boundary, std::string_view title,
                 const ChartStyle& style) {
  std::vector<TextBar> bars = bars_at(r, boundary);
  if (bars.empty()) return;
  if (boundary == Boundary::l2_hbm && r.request.pass != "both") {
    const TrafficEntry* const least = r.algorithms.front().at(Boundary::compulsory);
    bars.push_back(bar_of("compulsory", *least->traffic));
  }
  const bool counted = std::any_of(bars.begin(), bars.end(), [](const TextBar& b) { return b.label == "  counted"; });
  out.push_back(Drawing{fmt::format("{}  ({} read, {} write{})", title, style.unicode ? "█" : "#",
                                    style.unicode ? "▒" : "=", counted ? "; counted: by the hardware" : ""),
                        draw_bars(bars, style)});
}

constexpr std::string_view kNoL2Roof = "  No L2 roof: gpu probe measures it, --roofs takes it";

/// The measured roofs, numbered, in lines of at most `width` columns.
std::vector<std::string> roof_legend(const std::vector<GpuRoof>& roofs, std::size_t width) {
  std::vector<std::string> lines;
  std::string line = "  Measured roofs:";
  char mark = '1';
  for (const GpuRoof& roof : roofs) {
    if (!roof.measured) continue;
    const std::string words = fmt::format(" {} {} {};", mark++, roof.label, text::roof_rate(roof));
    if (line.size() + words.size() > width) {
      lines.push_back(std::move(line));
      line = "   ";
    }
    line += words;
  }
  line.pop_back();
  lines.push_back(std::move(line));
  return lines;
}

/// The measured roofs as lines. An exponential a live pair makes exp2 a level, the same for all forward algorithms.
std::vector<TextLine> measured_lines(const std::vector<GpuRoof>& roofs, const RoofDemand& demand) {
  std::vector<TextLine> lines;
  char mark = '1';
  for (const GpuRoof& roof : roofs) {
    if (!roof.measured) continue;
    const bool sloped = roof.resource == RoofResource::hbm || roof.resource == RoofResource::l2;
    const std::optional<double> level = allowed_flop_per_s(roof, demand);
    if (sloped || level) lines.push_back({mark, sloped, sloped ? roof.rate : *level});
    ++mark;
  }
  return lines;
}

/// What the bytes between SM and L2 allow, and which roof of all is the lowest.
std::string second_line(const std::vector<GpuRoof>& roofs, const RoofDemand& demand, std::vector<TextPoint>& points,
                        char mark) {
  std::string words = "  ";
  const auto l2 =
      std::find_if(roofs.begin(), roofs.end(), [](const GpuRoof& roof) { return roof.resource == RoofResource::l2; });
  if (l2 != roofs.end()) {
    if (const std::optional<double> allowed = allowed_flop_per_s(*l2, demand)) {
      const double intensity = demand.flop / *demand.l2_bytes;
      points.push_back({mark, intensity, *allowed});
      words += fmt::format(" at SM-L2 {} FLOP/B, {};", text::intensity({intensity}), text::flop_rate({*allowed}));
    }
  }
  if (const std::optional<LowestRoof> lowest = lowest_roof(roofs, demand))
    words += fmt::format(" lowest roof: {}, {}", lowest->roof->label, text::flop_rate({lowest->flop_per_s}));
  return words;
}

std::string roof_words(const GpuSpec& gpu, FlopPerSecond peak) {
  return fmt::format("FLOP/s over FLOP/B; datasheet {}, {}", text::flop_rate(peak), text::byte_rate(gpu.hbm_bandwidth));
}

void append_roofline(Document& out, const RunResult& r, const ChartStyle& style) {
  const auto& peak = r.request.gpu.peak[static_cast<std::size_t>(r.request.shape.dtype)];
  if (!peak) return;
  const std::vector<GpuRoof> roofs = roofs_of(r.request);
  const bool any_measured = !r.request.gpu.measured_roofs.empty();
  std::vector<TextPoint> points;
  std::vector<std::string> legend;
  RoofDemand last;
  char mark = 'A';
  std::optional<FlopPerByte> ridge;
  for (const AlgorithmResult& a : r.algorithms) {
    if (!a.roofline) continue;
    ridge = a.roofline->ridge;
    points.push_back({mark, a.roofline->intensity.value, a.roofline->attainable.value});
    std::string words = fmt::format("  {} {}: {} FLOP/B, at most {}", mark, a.algorithm->name,
                                    text::intensity(a.roofline->intensity), text::flop_rate(a.roofline->attainable));
    if (a.achieved) {
      const char small = static_cast<char>(mark - 'A' + 'a');
      points.push_back({small, a.roofline->intensity.value, a.achieved->value});
      words += fmt::format("; {} measured {}", small, text::flop_rate(*a.achieved));
    }
    legend.push_back(std::move(words));
    last = demand_of(a);
    if (any_measured) legend.push_back(second_line(roofs, last, points, mark));
    ++mark;
  }
  if (!ridge) {
    out.push_back(Labelled{"Roofline", "not drawn: the bytes through HBM are not known; --engine sim simulates them"});
    return;
  }
  Drawing drawing{fmt::format("Roofline at HBM  ({})", roof_words(r.request.gpu, *peak)), {}};
  drawing.lines = draw_roofline(
      {ridge->value, peak->value, measured_lines(roofs, last)}, points,
      {[](double x) { return text::intensity({x}); }, [](double y) { return text::flop_rate({y}); }}, style);
  drawing.lines.insert(drawing.lines.end(), legend.begin(), legend.end());
  if (any_measured) {
    const std::vector<std::string> more = roof_legend(roofs, static_cast<std::size_t>(style.width));
    drawing.lines.insert(drawing.lines.end(), more.begin(), more.end());
  }
  if (std::none_of(roofs.begin(), roofs.end(), [](const GpuRoof& roof) { return roof.resource == RoofResource::l2; }))
    drawing.lines.emplace_back(kNoL2Roof);
  out.push_back(std::move(drawing));
}

}  // namespace

void append_charts(Document& out, const RunResult& result, const ChartStyle& style) {
  append_bars(out, result, Boundary::l2_hbm, "Bytes through HBM", style);
  append_bars(out, result, Boundary::sm_l2, "Bytes between SM and L2", style);
  append_roofline(out, result, style);
}

}  // namespace hbmscope
