#include "plot/svg.hpp"

#include <fmt/format.h>

#include <vector>

#include "plot/escape.hpp"
#include "plot/svg_parts.hpp"
#include "plot/text_width.hpp"

namespace hbmscope::plot {
namespace {

constexpr double kMargin = 8;

double draw(Canvas& canvas, const Chart& chart, double top, std::string_view id, std::string& root) {
  switch (chart.kind) {
    case Kind::bars:
      return draw_bars(canvas, chart, top, id, root);
    case Kind::histogram:
      return draw_histogram(canvas, chart, top, root);
    case Kind::lines:
      break;
  }
  return draw_lines(canvas, chart, top, root);
}

std::string heading(const Chart& chart) {
  return chart.variant.empty() ? chart.question : chart.question + "  (" + chart.variant + ")";
}

std::string unit_words(const Axis& axis) {
  switch (axis.unit) {
    case Unit::bytes:
      return "bytes (kB, MB: powers of 1000)";
    case Unit::binary_bytes:
      return "bytes (KiB, MiB: powers of 1024)";
    case Unit::flop_rate:
      return "floating-point operations a second";
    case Unit::intensity:
      return "floating-point operations a byte";
    case Unit::length:
      return "a count (k = 1024)";
    case Unit::plain:
      break;
  }
  return "a number without a unit";
}

/// Paragraphs of small print, each broken into lines. Returns the bottom.
double draw_small_print(Canvas& canvas, const Chart& chart, double top) {
  std::vector<std::string> paragraphs{"Boundary: " + chart.boundary, "Units: " + units_of(chart)};
  paragraphs.insert(paragraphs.end(), chart.notes.begin(), chart.notes.end());
  for (const std::string& command : chart.commands) paragraphs.push_back("Data: " + command);
  double y = top + 8;
  for (const std::string& paragraph : paragraphs) {
    for (const std::string& line : wrapped(clean(paragraph), kSmall, kWidth - 2 * kMargin)) {
      canvas.text(kMargin, y, line, {kSmall, Anchor::start, false, true});
      y += 15;
    }
    y += 3;
  }
  return y;
}

std::string root_element(double height, std::string_view attributes) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
      "font-family=\"{}\"{}>\n",
      px(kWidth), px(height), px(kWidth), px(height), kFonts, attributes);
}

}  // namespace

std::string units_of(const Chart& chart) {
  if (chart.kind == Kind::bars) return unit_words(chart.x);
  if (chart.kind == Kind::histogram) return "x: " + unit_words(chart.x) + "; y: a count";
  return "x: " + unit_words(chart.x) + "; y: " + unit_words(chart.y);
}

std::string described(const Chart& chart) {
  std::string words;
  const auto add = [&](const std::string& more) { words += (words.empty() ? "" : "; ") + more; };
  for (const Series& series : chart.series) add(series.note.empty() ? series.name : series.name + ": " + series.note);
  for (const Bar& bar : chart.bars) add(fmt::format("{}, {}: {} B", bar.group, bar.label, exact(bar.total)));
  return words;
}

std::string to_svg(const Chart& chart, std::string_view title) {
  Canvas canvas;
  double y = 12;
  for (const std::string& line : wrapped(clean(heading(chart)), kHeading * 1.13, kWidth - 2 * kMargin)) {
    canvas.text(kMargin, y + 10, line, {kHeading, Anchor::start, true});
    y += 21;
  }
  if (!title.empty()) {
    canvas.text(kMargin, y + 8, shortened(clean(title), kText, kWidth - 2 * kMargin),
                {kText, Anchor::start, false, true});
    y += 18;
  }
  std::string root;
  y = draw(canvas, chart, y + 6, chart.picture, root);
  y = draw_small_print(canvas, chart, y);
  return root_element(y + 4, R"( role="img" aria-labelledby="title desc")" + root) +
         fmt::format("<title id=\"title\">{}</title>\n<desc id=\"desc\">{}</desc>\n", escaped(heading(chart)),
                     escaped(described(chart) + ". Boundary: " + chart.boundary + ". Units: " + units_of(chart))) +
         fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>\n", px(kWidth), px(y + 4)) + canvas.body() +
         "</svg>\n";
}

std::string to_inline_svg(const Chart& chart, std::string_view id) {
  Canvas canvas;
  std::string root;
  const double bottom = draw(canvas, chart, 4, id, root);
  return root_element(bottom,
                      fmt::format(R"( id="{}" role="img" aria-label="{}")", id, escaped(heading(chart))) + root) +
         canvas.body() + "</svg>\n";
}

}  // namespace hbmscope::plot
