#pragma once
#include <string>
#include <string_view>

#include "plot/chart.hpp"

namespace hbmscope::plot {

inline constexpr double kText = 12, kSmall = 11, kHeading = 15;

enum class Anchor : std::uint8_t { start, middle, end };

/// How a text looks. `ink` is a class of the page's style sheet; what stands in the SVG itself is the light page's.
struct TextLook {
  double size = kText;
  Anchor anchor = Anchor::start;
  bool bold = false;
  bool soft = false;       ///< a caption
  double rotation = 0;     ///< degrees, about its own start
  bool on_colour = false;  ///< inside a bar
};

/// Writes the elements of an SVG. Only attributes that every renderer knows, no style sheet: it looks the same wherever
/// it is opened. The classes are for the page, whose style sheet gives dark colours to the same elements.
class Canvas {
 public:
  void text(double x, double y, std::string_view words, const TextLook& look = {});
  /// A line of the frame: "axis", "grid", "guide" or "whisker".
  void line(double x1, double y1, double x2, double y2, std::string_view kind);
  void polyline(std::string_view points, std::string_view kind);
  /// A filled rectangle with what it stands for.
  void bar(double x, double y, double width, double height, int colour, std::string_view attributes,
           std::string_view title);
  void raw(std::string_view markup) { body_ += markup; }

  [[nodiscard]] const std::string& body() const { return body_; }

 private:
  std::string body_;
};

/// A coordinate: a tenth of a pixel is as fine as it is seen.
std::string px(double value);
double px_value(double value);  ///< the number that px() writes

/// " class=... stroke=... fill=..." of a series: a group that its lines and marks inherit from.
std::string colour_attributes(int colour);
/// The outline of a mark at a place, as commands of a path; several in a row make one path.
std::string mark_path(const Style& style, double x, double y);
std::string_view dash_attribute(Line line);

}  // namespace hbmscope::plot
