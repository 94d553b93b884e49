#include "plot/scale.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hbmscope::plot {
namespace {

/// Powers of `base`, every `step`-th, in [from, to].
std::vector<double> powers(double base, int step, double from, double to) {
  std::vector<double> all;
  const int first = static_cast<int>(std::ceil(std::log(from) / std::log(base) - 1e-9));
  for (int exponent = first; std::pow(base, exponent) <= to * (1 + 1e-12); ++exponent) {
    if (exponent % step == 0) all.push_back(std::pow(base, exponent));
  }
  return all;
}

/// 1, 2 and 5 times each power of ten.
std::vector<double> in_decades(double from, double to) {
  std::vector<double> all;
  for (const double power : powers(10, 1, from / 10, to)) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (power * factor >= from && power * factor <= to) all.push_back(power * factor);
    }
  }
  return all;
}

/// Multiples of 1, 2 or 5 times a power of ten.
std::vector<double> evenly(double from, double to, std::size_t wanted) {
  const double rough = (to - from) / static_cast<double>(std::max<std::size_t>(wanted, 1));
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (power * factor >= rough * (1 - 1e-9)) step = power * factor;
  }
  std::vector<double> all;
  for (double k = std::ceil(from / step - 1e-9); k * step <= to * (1 + 1e-12); ++k)
    all.push_back(k * step + 0.0);  // no -0
  return all;
}

}  // namespace

Scale::Scale(const Axis& axis, double least, double most, double first_pixel, double last_pixel)
    : logarithmic_(axis.logarithmic),
      binary_(axis.unit == Unit::length || axis.unit == Unit::binary_bytes),
      from_(least),
      to_(most),
      first_(first_pixel),
      last_(last_pixel) {
  if (logarithmic_) {
    const double room = most > least ? std::pow(most / least, 0.04) : 2;
    from_ = std::max(least / room, std::numeric_limits<double>::min());
    to_ = std::min(most * room, std::numeric_limits<double>::max() / 16);
  } else if (!(most > least)) {
    to_ = least + 1;
  }
}

double Scale::place(double value) const {
  return logarithmic_ ? std::log(value) : value;
}

double Scale::operator()(double value) const {
  return first_ + (place(value) - place(from_)) / (place(to_) - place(from_)) * (last_ - first_);
}

std::vector<double> Scale::ticks(std::size_t wanted) const {
  if (!logarithmic_) return evenly(from_, to_, wanted);
  const double base = binary_ ? 2 : 10;
  for (int step = 1;; ++step) {
    std::vector<double> all = powers(base, step, from_, to_);
    if (all.size() > std::max<std::size_t>(wanted, 2)) continue;
    if (all.size() >= 3 || step > 1) return all;
    std::vector<double> finer = in_decades(from_, to_);
    if (finer.size() < 3) finer = evenly(from_, to_, 4);
    return finer;
  }
}

}  // namespace hbmscope::plot
