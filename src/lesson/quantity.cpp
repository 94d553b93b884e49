#include "lesson/quantity.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.hpp"

namespace hbmscope::lesson {
namespace {

constexpr int kMostExponent = 1000;  ///< no unit has a larger one; keeps exponents far from overflow

Dimension add(Dimension a, Dimension b, int sign) {
  const Dimension sum{a.bytes + sign * b.bytes, a.flop + sign * b.flop, a.seconds + sign * b.seconds};
  for (const int exponent : {sum.bytes, sum.flop, sum.seconds}) {
    if (std::abs(exponent) > kMostExponent)
      throw Error(ErrorKind::data, "a unit to a power beyond " + std::to_string(kMostExponent), "divide by the unit");
  }
  return sum;
}

void demand_same(const Quantity& a, const Quantity& b, const char* what) {
  if (a.dimension() == b.dimension()) return;
  const bool missing_unit = a.dimension().plain() || b.dimension().plain();
  const std::string unit = name(a.dimension().plain() ? b.dimension() : a.dimension());
  throw Error(ErrorKind::data,
              std::string("cannot ") + what + " " + name(a.dimension()) + " and " + name(b.dimension()),
              missing_unit ? "give the plain number its unit: multiply it by 1 " + unit : "both sides need one unit");
}

/// A result that is exact where the whole numbers it came from gave one.
Quantity with(std::optional<std::int64_t> exact, double real, Dimension dimension) {
  return exact ? Quantity::whole(*exact, dimension) : Quantity(real, dimension);
}

template <class Operation>
std::optional<std::int64_t> exactly(const Quantity& a, const Quantity& b, Operation overflows) {
  std::int64_t result = 0;
  if (!a.exact() || !b.exact() || overflows(*a.exact(), *b.exact(), &result)) return std::nullopt;
  return result;
}

struct Base {
  std::string_view name;
  Dimension dimension;
  std::string_view prefixes;  ///< first letters that it takes
};
constexpr std::array<Base, 3> kBases{
    {{"FLOP", {0, 1, 0}, "kMGTP"}, {"B", {1, 0, 0}, "kMGTPK"}, {"s", {0, 0, 1}, "mun"}}};

std::optional<Quantity> prefix_size(std::string_view prefix, std::string_view allowed) {
  constexpr std::string_view kLarge = "kMGTP";
  if (prefix.empty()) return Quantity::whole(1);
  if (prefix == "\xC2\xB5" || prefix == "\xCE\xBC") prefix = "u";  // the micro sign, the Greek letter
  if (allowed.find(prefix[0]) == std::string_view::npos) return std::nullopt;
  const bool binary = prefix.size() == 2 && prefix[1] == 'i' && allowed.ends_with('K');
  if (prefix.size() != 1 && !binary) return std::nullopt;
  if (const auto small = std::string_view("mun").find(prefix[0]); small != std::string_view::npos) {
    return Quantity(small == 0 ? 1e-3 : small == 1 ? 1e-6 : 1e-9);
  }
  if (prefix == "K" || prefix == "ki") return std::nullopt;
  const auto step = prefix[0] == 'K' ? 0 : kLarge.find(prefix[0]);
  std::int64_t size = 1;
  for (std::size_t i = 0; i <= step; ++i) size *= binary ? 1024 : 1000;
  return Quantity::whole(size);
}

std::optional<Unit> simple_unit(std::string_view text) {
  for (const Base& base : kBases) {
    if (!text.ends_with(base.name)) continue;
    const auto size = prefix_size(text.substr(0, text.size() - base.name.size()), base.prefixes);
    if (size) return Unit{base.dimension, *size};
  }
  return std::nullopt;
}

/// What a word of a key says: "bytes", "flop", "s".
std::optional<Dimension> word_dimension(std::string_view word) {
  if (word == "bytes" || word == "byte") return Dimension{1, 0, 0};
  if (word == "flop") return Dimension{0, 1, 0};
  if (word == "s" || word == "seconds" || word == "second") return Dimension{0, 0, 1};
  return std::nullopt;
}

/// A quotient of two counts of one unit, whatever its name ends in: "reduction_bytes", "counted_over_predicted".
bool is_ratio(std::string_view key) {
  return key.starts_with("reduction_") || key.find("_over_") != std::string_view::npos;
}

std::optional<Unit> key_unit(std::string_view key) {
  if (is_ratio(key)) return Unit{{}, Quantity::whole(1)};
  // Keys of older standing that name no unit. Those of `batch` are bytes by tensor.
  constexpr std::array<std::pair<std::string_view, Dimension>, 5> kKnown{{{"matmul", {0, 1, 0}},
                                                                          {"executed_matmul", {0, 1, 0}},
                                                                          {"read", {1, 0, 0}},
                                                                          {"write", {1, 0, 0}},
                                                                          {"compulsory", {1, 0, 0}}}};
  for (const auto& [known, dimension] : kKnown) {
    if (key == known) return Unit{dimension, Quantity::whole(1)};
  }
  if (key == "tflops") return find_unit("TFLOP/s");
  const auto last_word = [](std::string_view text) { return text.substr(text.rfind('_') + 1); };
  const auto last = word_dimension(last_word(key));
  if (!last) return std::nullopt;
  const std::size_t per = key.rfind("_per_");
  if (per == std::string_view::npos || key.substr(per + 5) != last_word(key)) return Unit{*last, Quantity::whole(1)};
  const auto above = word_dimension(last_word(key.substr(0, per)));
  return Unit{add(above.value_or(Dimension{}), *last, -1), Quantity::whole(1)};
}

}  // namespace

std::string name(Dimension d) {
  if (d.plain()) return "a plain number";
  std::string above, below;
  const std::array<std::pair<const char*, int>, 3> parts{{{"FLOP", d.flop}, {"B", d.bytes}, {"s", d.seconds}}};
  for (const auto& [unit, exponent] : parts) {
    if (exponent == 0) continue;
    std::string& side = exponent > 0 ? above : below;
    side += (side.empty() ? "" : " ") + std::string(unit);
    if (std::abs(exponent) > 1) side += "^" + std::to_string(std::abs(exponent));
  }
  if (below.empty()) return above;
  return (above.empty() ? "1" : above) + "/" + (below.find(' ') == std::string::npos ? below : "(" + below + ")");
}

Quantity Quantity::whole(std::int64_t value, Dimension dimension) {
  Quantity q(static_cast<double>(value), dimension);
  q.exact_ = value;
  return q;
}

Quantity Quantity::nearest(double value, Dimension dimension) {
  if (std::abs(value) < kTwo53 && value == std::floor(value)) return whole(static_cast<std::int64_t>(value), dimension);
  return Quantity(value, dimension);
}

Quantity Quantity::as(Dimension dimension) const {
  Quantity q = *this;
  q.dimension_ = dimension;
  return q;
}

Quantity operator+(const Quantity& a, const Quantity& b) {
  demand_same(a, b, "add");
  const auto add_overflows = [](std::int64_t x, std::int64_t y, std::int64_t* z) {
    return __builtin_add_overflow(x, y, z);
  };
  return with(exactly(a, b, add_overflows), a.real() + b.real(), a.dimension());
}

Quantity operator-(const Quantity& a, const Quantity& b) {
  demand_same(a, b, "subtract");
  const auto sub_overflows = [](std::int64_t x, std::int64_t y, std::int64_t* z) {
    return __builtin_sub_overflow(x, y, z);
  };
  return with(exactly(a, b, sub_overflows), a.real() - b.real(), a.dimension());
}

Quantity operator*(const Quantity& a, const Quantity& b) {
  const auto mul_overflows = [](std::int64_t x, std::int64_t y, std::int64_t* z) {
    return __builtin_mul_overflow(x, y, z);
  };
  return with(exactly(a, b, mul_overflows), a.real() * b.real(), add(a.dimension(), b.dimension(), 1));
}

Quantity operator/(const Quantity& a, const Quantity& b) {
  if (b.real() == 0) throw Error(ErrorKind::data, "division by zero", "what stands below the line must not be 0");
  const auto divides_not = [](std::int64_t x, std::int64_t y, std::int64_t* z) {
    if (x == std::numeric_limits<std::int64_t>::min() || x % y != 0) return true;
    *z = x / y;
    return false;
  };
  return with(exactly(a, b, divides_not), a.real() / b.real(), add(a.dimension(), b.dimension(), -1));
}

Quantity power(const Quantity& base, const Quantity& exponent) {
  if (!exponent.dimension().plain()) {
    throw Error(ErrorKind::data, "an exponent must be a plain number, but this one is in " + name(exponent.dimension()),
                "divide it by its unit");
  }
  const bool small = exponent.exact() && std::abs(*exponent.exact()) <= 64;
  if (!base.dimension().plain() && !small) {
    throw Error(ErrorKind::data, "only a small whole power of " + name(base.dimension()) + " has a unit",
                "take a power such as 2, or divide by the unit first");
  }
  if (!small || *exponent.exact() < 0) {
    const int n = small ? static_cast<int>(*exponent.exact()) : 0;
    Dimension dimension;
    for (int i = 0; i > n; --i) dimension = add(dimension, base.dimension(), -1);
    return Quantity(std::pow(base.real(), exponent.real()), dimension);
  }
  Quantity result = Quantity::whole(1);
  for (std::int64_t i = 0; i < *exponent.exact(); ++i) result = result * base;
  return result;
}

std::optional<Unit> find_unit(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto above = simple_unit(text.substr(0, slash));
  if (!above || slash == std::string_view::npos) return above;
  const auto below = simple_unit(text.substr(slash + 1));
  if (!below) return std::nullopt;
  return Unit{add(above->dimension, below->dimension, -1), above->size / below->size};
}

Unit unit_of_keys(const std::vector<std::string>& keys) {
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    if (const auto unit = key_unit(*key)) return *unit;
  }
  return {{}, Quantity::whole(1)};
}

}  // namespace hbmscope::lesson
