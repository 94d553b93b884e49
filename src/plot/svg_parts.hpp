#pragma once
#include <string>
#include <vector>

#include "plot/chart.hpp"
#include "plot/scale.hpp"
#include "plot/svg_canvas.hpp"

/// What the files that draw the three kinds of charts share.
namespace hbmscope::plot {

/// Draws from `top` on and returns the bottom. `root` gets the attributes of the svg element that the page's script
/// reads.
double draw_bars(Canvas& canvas, const Chart& chart, double top, std::string_view id, std::string& root);
double draw_lines(Canvas& canvas, const Chart& chart, double top, std::string& root);
double draw_histogram(Canvas& canvas, const Chart& chart, double top, std::string& root);

/// Where the axes are.
struct PlotArea {
  double left, right, top, bottom;
};

/// The names of series to the right of the drawing, with what their lines and marks look like.
class Legend {
 public:
  explicit Legend(const Chart& chart);
  [[nodiscard]] double width() const { return width_; }
  [[nodiscard]] double height() const;
  void draw(Canvas& canvas, double x, double y) const;

 private:
  const Chart& chart_;
  double width_ = 0;
};

/// Ticks of the x axis whose labels stand apart from each other.
std::vector<double> ticks_apart(const Scale& scale, const Axis& axis);
void draw_x_axis(Canvas& canvas, const PlotArea& area, const Scale& scale, const Axis& axis);
/// With its title above; `left` must leave room for the labels, which y_label_width() tells.
void draw_y_axis(Canvas& canvas, const PlotArea& area, const Scale& scale, const Axis& axis,
                 const std::vector<double>& ticks, double title_y);
double y_label_width(const std::vector<double>& ticks, Unit unit);

}  // namespace hbmscope::plot
