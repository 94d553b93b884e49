#pragma once
#include <optional>
#include <string>
#include <vector>

/// Charts made of characters, for a terminal or a log. They place marks; what the marks say has been computed before.
namespace hbmscope {

struct ChartStyle {
  int width = 80;        ///< columns; no line is wider
  bool unicode = false;  ///< blocks and box drawing; else ASCII
};

/// A bar of two parts, read and written.
struct TextBar {
  std::string label;  ///< ASCII
  double first = 0, second = 0;
  std::string value;  ///< ASCII, what stands behind the bar
};
/// One line a bar, on one linear scale from 0. A part that is not 0 has a character, however small it is.
std::vector<std::string> draw_bars(const std::vector<TextBar>& bars, const ChartStyle& style);

struct TextPoint {
  char mark;
  double x, y;
};
/// A further roof: a slope, or a level from end to end.
struct TextLine {
  char mark;  ///< stands on it once, at the left end of a slope or the right end of a level
  bool sloped;
  double rate;  ///< y over x, or y
};
struct TextRoof {
  double ridge;  ///< where the slope meets the peak, in x
  double peak;   ///< in y; the slope is peak / ridge
  std::vector<TextLine> more = {};
};
/// Points under roofs, both axes logarithmic with lines at powers of ten. Of points on one place the later ones move
/// to the right. Labels give a power of ten as text.
struct TextAxes {
  std::string (*x_label)(double);
  std::string (*y_label)(double);
};
std::vector<std::string> draw_roofline(const TextRoof& roof, const std::vector<TextPoint>& points, const TextAxes& axes,
                                       const ChartStyle& style);

}  // namespace hbmscope
