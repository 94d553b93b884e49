#include "plot/svg_canvas.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <initializer_list>
#include <utility>

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

double px_value(double value) {
  return std::round(value * 10) / 10;
}

std::string px(double value) {
  std::string text = fmt::format("{:.1f}", px_value(value));
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

std::string mark_path(const Style& style, double x, double y) {
  const double r = style.small ? 3 : 4.5;
  const auto at = [&](double dx, double dy) { return "M" + px(x + dx * r) + " " + px(y + dy * r); };
  const auto polygon = [&](std::initializer_list<std::pair<double, double>> steps) {
    std::string path;
    for (const auto& [dx, dy] : steps) path += fmt::format("l{} {}", px(dx * r), px(dy * r));
    return path + "z";
  };
  switch (style.shape) {
    case Shape::none:
      break;
    case Shape::circle:
      return at(-0.9, 0) +
             fmt::format("a{0} {0} 0 1 0 {1} 0a{0} {0} 0 1 0 -{1} 0z", px(0.9 * r), px(2 * px_value(0.9 * r)));
    case Shape::square:
      return at(-0.8, -0.8) + polygon({{1.6, 0}, {0, 1.6}, {-1.6, 0}});
    case Shape::triangle:
      return at(0, -1.1) + polygon({{1, 1.8}, {-2, 0}});
    case Shape::diamond:
      return at(0, -1.1) + polygon({{1.1, 1.1}, {-1.1, 1.1}, {-1.1, -1.1}});
    case Shape::wedge:
      return at(0, 1.1) + polygon({{1, -1.8}, {-2, 0}});
    case Shape::cross:
      return at(-0.3, -1) + polygon({{0.6, 0},
                                     {0, 0.7},
                                     {0.7, 0},
                                     {0, 0.6},
                                     {-0.7, 0},
                                     {0, 0.7},
                                     {-0.6, 0},
                                     {0, -0.7},
                                     {-0.7, 0},
                                     {0, -0.6},
                                     {0.7, 0}});
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
