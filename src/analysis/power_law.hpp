#pragma once
#include <cstddef>
#include <optional>
#include <span>

namespace hbmscope {

/// y = factor * x^exponent, the straight line of least squares through the logarithms.
struct PowerLaw {
  double exponent;
  double factor;
  /// Half of the exponent's 95 % confidence interval, by Student's t of points - 2; nothing for two points, through
  /// which every line goes. Of exact counts it tells how straight they lie, not how noisy they are.
  std::optional<double> half_width;
  std::size_t points;
};

/// Fits the pairs (x[i], y[i]), of equal number; those with a coordinate that is not above 0 are left out. Nothing
/// where fewer than two different x are left.
std::optional<PowerLaw> fit_power_law(std::span<const double> x, std::span<const double> y);

/// The value that |t| of Student's distribution exceeds with probability `1 - inside`, e.g. 2.571 for 0.95 and five
/// degrees of freedom.
double student_t(double inside, std::size_t degrees);

}  // namespace hbmscope
