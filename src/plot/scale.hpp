#pragma once
#include <vector>

#include "plot/chart.hpp"

namespace hbmscope::plot {

/// From values to pixels along one axis.
class Scale {
 public:
  /// `least` and `most` of the values; a logarithmic scale wants them above 0. Equal ones get room around them.
  Scale(const Axis& axis, double least, double most, double first_pixel, double last_pixel);

  [[nodiscard]] double operator()(double value) const;
  [[nodiscard]] bool contains(double value) const { return value >= from_ && value <= to_; }
  [[nodiscard]] double from() const { return from_; }
  [[nodiscard]] double to() const { return to_; }
  [[nodiscard]] double first_pixel() const { return first_; }
  [[nodiscard]] double last_pixel() const { return last_; }

  /// Round values on the axis, at most about `wanted`: 1, 2 and 5 times powers of ten, or powers of two for lengths and
  /// memories.
  [[nodiscard]] std::vector<double> ticks(std::size_t wanted) const;

 private:
  [[nodiscard]] double place(double value) const;

  bool logarithmic_, binary_;
  double from_, to_, first_, last_;
};

}  // namespace hbmscope::plot
