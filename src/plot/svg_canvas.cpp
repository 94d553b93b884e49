#include "plot/svg_canvas.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "plot/escape.hpp"
#include "plot/palette.hpp"

namespace hbmscope::plot {
namespace {

struct Stroke {
  std::string_view kind, colour, width, dash;
};
constexpr std::array<Stroke, 4> kStrokes{{{"axis", "#444444", "1", ""},
                                          {"grid", "#dddddd", "1", ""},
                                          {"guide", "#999999", "1", "2 3"},
                                          {"whisker", "#1a1a1a", "1.5", ""}}};

std::string stroke_attributes(std::string_view kind) {
  for (const Stroke& stroke : kStrokes) {
    if (stroke.kind != kind) continue;
    const std::string dash = stroke.dash.empty() ? "" : fmt::format(R"( stroke-dasharray="{}")", stroke.dash);
    return fmt::format(R"(class="{}" stroke="{}" stroke-width="{}"{})", kind, stroke.colour, stroke.width, dash);
  }
  return {};
}

}  // namespace

std::string px(double value) {
  const double rounded = std::round(value * 10) / 10;
  std::string text = fmt::format("{:.1f}", rounded);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

void Canvas::text(double x, double y, std::string_view words, const TextLook& look) {
  constexpr std::array<std::string_view, 3> kAnchors{"", R"( text-anchor="middle")", R"( text-anchor="end")"};
  const std::string_view fill = look.on_colour ? "#ffffff" : look.soft ? "#555555" : "#1a1a1a";
  const std::string_view kind = look.on_colour ? "on" : look.soft ? "soft" : "ink";
  const std::string turn =
      look.rotation == 0 ? "" : fmt::format(R"x( transform="rotate({} {} {})")x", px(look.rotation), px(x), px(y));
  body_ += fmt::format(R"(<text x="{}" y="{}" class="{}" fill="{}" font-size="{}"{}{}{}>{}</text>)", px(x), px(y), kind,
                       fill, px(look.size), kAnchors[static_cast<std::size_t>(look.anchor)],
                       look.bold ? R"( font-weight="bold")" : "", turn, escaped(words));
  body_ += '\n';
}

void Canvas::line(double x1, double y1, double x2, double y2, std::string_view kind) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n", px(x1), px(y1), px(x2), px(y2),
                       stroke_attributes(kind));
}

void Canvas::polyline(std::string_view points, std::string_view kind) {
  body_ += fmt::format("<polyline points=\"{}\" fill=\"none\" {}/>\n", points, stroke_attributes(kind));
}

void Canvas::bar(double x, double y, double width, double height, int index, std::string_view attributes,
                 std::string_view title) {
  // A bar of a value far below the others' is still there: a third of a pixel.
  body_ += fmt::format(
      "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" class=\"mark b{}\" "
      "fill=\"{}\"{}><title>{}</title></rect>\n",
      x, px(y), std::max(width, 0.3), px(height), index, colour(index).light, attributes, escaped(title));
}

std::string colour_attributes(int index) {
  return fmt::format(R"(c{}" stroke="{}" fill="{}")", index, colour(index).light, colour(index).light);
}

std::string mark_path(Shape shape, double x, double y) {
  const auto at = [&](double dx, double dy) { return "M" + px(x + dx) + " " + px(y + dy); };
  switch (shape) {
    case Shape::none:
      break;
    case Shape::circle:
      return at(-4, 0) + "a4 4 0 1 0 8 0a4 4 0 1 0-8 0z";
    case Shape::square:
      return at(-3.6, -3.6) + "h7.2v7.2h-7.2z";
    case Shape::triangle:
      return at(0, -5) + "l4.6 8h-9.2z";
    case Shape::diamond:
      return at(0, -5) + "l5 5-5 5-5-5z";
    case Shape::wedge:
      return at(0, 5) + "l4.6-8h-9.2z";
    case Shape::cross:
      return at(-1.5, -4.5) + "h3v3h3v3h-3v3h-3v-3h-3v-3h3z";
  }
  return {};
}

std::string_view dash_attribute(Line line) {
  switch (line) {
    case Line::dashed:
      return R"( stroke-dasharray="7 4")";
    case Line::dotted:
      return R"( stroke-dasharray="2 3")";
    default:
      return "";
  }
}

}  // namespace hbmscope::plot
