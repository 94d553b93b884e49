#include "analysis/power_law.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace hbmscope {
namespace {

/// Probability that |t| stays below `t`: the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
double inside_of(double t, std::size_t degrees) {
  const auto n = static_cast<double>(degrees);
  const double theta = std::atan(t / std::sqrt(n)), c2 = std::cos(theta) * std::cos(theta);
  const bool odd = degrees % 2 == 1;
  double term = odd ? std::cos(theta) : 1, sum = odd && degrees == 1 ? 0 : term;
  for (double k = odd ? 3 : 2; k <= n - 2; k += 2) {
    term *= c2 * (k - 1) / k;
    sum += term;
  }
  return odd ? 2 / std::numbers::pi * (theta + std::sin(theta) * sum) : std::sin(theta) * sum;
}

}  // namespace

double student_t(double inside, std::size_t degrees) {
  double low = 0, high = 1;
  while (inside_of(high, degrees) < inside) high *= 2;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (inside_of(middle, degrees) < inside ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::optional<PowerLaw> fit_power_law(std::span<const double> x, std::span<const double> y) {
  std::vector<double> u, v;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (!(x[i] > 0) || !(y[i] > 0)) continue;
    u.push_back(std::log(x[i]));
    v.push_back(std::log(y[i]));
  }
  if (u.size() < 2) return std::nullopt;
  const auto n = static_cast<double>(u.size());
  double u_mean = 0, v_mean = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    u_mean += u[i] / n;
    v_mean += v[i] / n;
  }
  double uu = 0, uv = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    uu += (u[i] - u_mean) * (u[i] - u_mean);
    uv += (u[i] - u_mean) * (v[i] - v_mean);
  }
  const auto [least, most] = std::minmax_element(u.begin(), u.end());
  if (!(*least < *most)) return std::nullopt;
  PowerLaw law{uv / uu, std::exp(v_mean - uv / uu * u_mean), {}, u.size()};
  if (u.size() == 2) return law;
  double residual = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    const double off = v[i] - v_mean - law.exponent * (u[i] - u_mean);
    residual += off * off;
  }
  law.half_width = student_t(0.95, u.size() - 2) * std::sqrt(residual / (n - 2) / uu);
  return law;
}

}  // namespace hbmscope
