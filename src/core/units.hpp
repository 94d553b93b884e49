#pragma once
#include <compare>
#include <cstdint>
#include <type_traits>

#include "core/error.hpp"

namespace hbmscope {

[[noreturn]] inline void throw_beyond_64_bits() {
  throw Error(ErrorKind::usage, "a count of this shape does not fit 64 bits",
              "take a smaller batch, fewer heads or shorter sequences");
}

/// An exact integer quantity. Arithmetic is checked: a result beyond 64 bits is an Error, never a wrapped number.
template <class Tag>
class Exact {
 public:
  constexpr Exact() = default;
  constexpr explicit Exact(std::int64_t value) : value_(value) {}
  [[nodiscard]] constexpr std::int64_t value() const { return value_; }
  [[nodiscard]] constexpr double as_double() const { return static_cast<double>(value_); }

  friend constexpr Exact operator+(Exact a, Exact b) {
    Exact sum;
    if (__builtin_add_overflow(a.value_, b.value_, &sum.value_)) throw_beyond_64_bits();
    return sum;
  }
  friend constexpr Exact operator-(Exact a, Exact b) {
    Exact difference;
    if (__builtin_sub_overflow(a.value_, b.value_, &difference.value_)) throw_beyond_64_bits();
    return difference;
  }
  constexpr Exact& operator+=(Exact other) { return *this = *this + other; }
  friend constexpr auto operator<=>(Exact, Exact) = default;

 private:
  std::int64_t value_ = 0;
};

__extension__ typedef __int128 WideInt;  ///< for sums whose last step is checked

struct CountTag {};
using Count = Exact<CountTag>;         ///< a pure number: rows, tiles, (query, key) pairs
using Bytes = Exact<struct BytesTag>;  ///< bytes
using Flop = Exact<struct FlopTag>;    ///< floating-point operations; a multiply-add counts two

/// The 64-bit count that `value` is, or an Error.
inline Count narrow(WideInt value) {
  if (value > INT64_MAX || value < INT64_MIN) throw_beyond_64_bits();
  return Count(static_cast<std::int64_t>(value));
}

/// n times as many of the same.
template <class Tag>
constexpr Exact<Tag> operator*(Count n, Exact<Tag> each) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(n.value(), each.value(), &product)) throw_beyond_64_bits();
  return Exact<Tag>(product);
}
template <class Tag>
requires(!std::is_same_v<Tag, CountTag>) constexpr Exact<Tag> operator*(Exact<Tag> each, Count n) {
  return n * each;
}

/// A measured or derived real quantity in its SI base unit. Prefixes are chosen in report/format.cpp only.
template <class Tag>
struct Real {
  double value = 0;
  friend constexpr auto operator<=>(Real, Real) = default;
  friend constexpr Real operator+(Real a, Real b) { return {a.value + b.value}; }
  friend constexpr Real operator*(double factor, Real a) { return {factor * a.value}; }
  friend constexpr double operator/(Real a, Real b) { return a.value / b.value; }
};
using Seconds = Real<struct SecondsTag>;
using BytesPerSecond = Real<struct BytesPerSecondTag>;
using FlopPerSecond = Real<struct FlopPerSecondTag>;
using FlopPerByte = Real<struct FlopPerByteTag>;

constexpr Seconds operator/(Bytes b, BytesPerSecond rate) {
  return {b.as_double() / rate.value};
}
constexpr Seconds operator/(Flop f, FlopPerSecond rate) {
  return {f.as_double() / rate.value};
}
constexpr BytesPerSecond operator/(Bytes b, Seconds t) {
  return {b.as_double() / t.value};
}
constexpr FlopPerSecond operator/(Flop f, Seconds t) {
  return {f.as_double() / t.value};
}
constexpr FlopPerByte operator/(Flop f, Bytes b) {
  return {f.as_double() / b.as_double()};
}
constexpr FlopPerByte operator/(FlopPerSecond f, BytesPerSecond b) {
  return {f.value / b.value};
}
constexpr FlopPerSecond operator*(FlopPerByte intensity, BytesPerSecond b) {
  return {intensity.value * b.value};
}

}  // namespace hbmscope
