#include "lesson/functions.hpp"

#include <array>
#include <cmath>
#include <string>

#include "core/rounding.hpp"
#include "lesson/fail.hpp"

namespace hbmscope::lesson {
namespace {

/// A function of plain numbers alone, such as exp.
template <double (*kCompute)(double)>
Quantity of_plain(const std::vector<Quantity>& a) {
  if (!a[0].dimension().plain()) {
    fail("this function takes a plain number, and its argument is in " + name(a[0].dimension()),
         "divide it by 1 " + name(a[0].dimension()));
  }
  return Quantity::nearest(kCompute(a[0].real()));
}

/// A function that leaves the unit as it is, such as floor.
template <double (*kCompute)(double)>
Quantity of_any(const std::vector<Quantity>& a) {
  return a[0].exact() ? a[0] : Quantity::nearest(kCompute(a[0].real()), a[0].dimension());
}

double f16(double x) {
  return static_cast<double>(round_to(static_cast<float>(x), Dtype::fp16));
}
double bf16(double x) {
  return static_cast<double>(round_to(static_cast<float>(x), Dtype::bf16));
}
double f32(double x) {
  return static_cast<double>(static_cast<float>(x));
}

Quantity square_root(const std::vector<Quantity>& a) {
  const Dimension d = a[0].dimension();
  if (d.bytes % 2 != 0 || d.flop % 2 != 0 || d.seconds % 2 != 0)
    fail("sqrt of " + name(d) + " has no unit", "take the root of a plain number, or of a square such as B^2");
  return Quantity::nearest(std::sqrt(a[0].real()), {d.bytes / 2, d.flop / 2, d.seconds / 2});
}

Quantity absolute(const std::vector<Quantity>& a) {
  return a[0].real() < 0 ? Quantity::whole(0, a[0].dimension()) - a[0] : a[0];
}

template <bool kLargest>
Quantity extreme(const std::vector<Quantity>& all) {
  Quantity best = all[0];
  for (const Quantity& one : all) {
    if (one.dimension() != best.dimension())
      fail("cannot compare " + name(best.dimension()) + " and " + name(one.dimension()), "give them one unit");
    if (kLargest ? one.real() > best.real() : one.real() < best.real()) best = one;
  }
  return best;
}

double exp_of(double x) {
  return std::exp(x);
}
double log_of(double x) {
  return std::log(x);
}
double log2_of(double x) {
  return std::log2(x);
}
double ceil_of(double x) {
  return std::ceil(x);
}
double floor_of(double x) {
  return std::floor(x);
}
double round_of(double x) {
  return std::round(x);
}

constexpr std::array<Function, 13> kFunctions{{{"sqrt", 1, 1, square_root},
                                               {"exp", 1, 1, of_plain<exp_of>},
                                               {"ln", 1, 1, of_plain<log_of>},
                                               {"log2", 1, 1, of_plain<log2_of>},
                                               {"ceil", 1, 1, of_any<ceil_of>},
                                               {"floor", 1, 1, of_any<floor_of>},
                                               {"round", 1, 1, of_any<round_of>},
                                               {"abs", 1, 1, absolute},
                                               {"min", 1, 64, extreme<false>},
                                               {"max", 1, 64, extreme<true>},
                                               {"f16", 1, 1, of_plain<f16>},
                                               {"bf16", 1, 1, of_plain<bf16>},
                                               {"f32", 1, 1, of_plain<f32>}}};

}  // namespace

const Function* find_function(std::string_view name) {
  for (const Function& f : kFunctions) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

std::vector<std::string_view> function_names() {
  std::vector<std::string_view> names;
  for (const Function& f : kFunctions) names.push_back(f.name);
  return names;
}

}  // namespace hbmscope::lesson
