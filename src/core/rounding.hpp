#pragma once
#include <bit>
#include <cstdint>
#include <span>

#include "core/dtype.hpp"

namespace hbmscope {

namespace rounding {

inline constexpr std::uint32_t kSign = 0x80000000U;
inline constexpr std::uint32_t kInfinity = 0x7f800000U;   ///< as binary32; larger magnitudes are NaN
inline constexpr std::uint32_t kMax448 = 0x43e00000U;     ///< 448.0f
inline constexpr std::uint32_t kHalf65520 = 0x477ff000U;  ///< 65520.0f, half-way between fp16's largest number and 2^16

inline float bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  // bf16 is the upper half of binary32, so adding just under half of its last place (and one more if that place is odd)
  // rounds to nearest even, carries into the exponent and reaches infinity by itself.
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U;
  return std::bit_cast<float>((bits & ~kSign) > kInfinity ? bits | 0x00400000U : rounded);
}

/// Formats narrower than binary32 in both exponent and mantissa. Magnitudes from `overflow` on become `limit`.
template <int kMantissaBits, int kMinExponent>
inline float narrow(float value, std::uint32_t overflow, std::uint32_t limit) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & ~kSign;
  constexpr std::uint32_t kSmallest = static_cast<std::uint32_t>(127 + kMinExponent) << 23;
  const std::uint32_t exponent = (magnitude & kInfinity) > kSmallest ? (magnitude & kInfinity) : kSmallest;
  // Next to `anchor` binary32 numbers are as far apart as the target's are next to `value`, so the addition does the
  // rounding.
  const float anchor = std::bit_cast<float>(exponent + (static_cast<std::uint32_t>(23 - kMantissaBits) << 23));
  const float rounded = (std::bit_cast<float>(magnitude) + anchor) - anchor;
  std::uint32_t result = magnitude >= overflow ? limit : std::bit_cast<std::uint32_t>(rounded);
  result = magnitude > kInfinity ? magnitude | 0x00400000U : result;
  return std::bit_cast<float>(result | (bits & kSign));
}

inline float fp16(float value) {
  return narrow<10, -14>(value, kHalf65520, kInfinity);
}
inline float fp8(float value) {
  return narrow<3, -6>(value, kMax448, kMax448);
}

}  // namespace rounding

/// The number of `dtype` nearest to `value`, ties to even, subnormals kept, NaN to NaN.
/// Beyond the range fp16 and bf16 give infinity as IEEE 754 does; fp8 (E4M3 has no infinity) saturates to +-448,
/// infinity too: the saturating conversion of the OCP 8-bit floating point specification, which GPUs do.
inline float round_to(float value, Dtype dtype) {
  switch (dtype) {
    case Dtype::fp16:
      return rounding::fp16(value);
    case Dtype::bf16:
      return rounding::bf16(value);
    case Dtype::fp8:
      return rounding::fp8(value);
    case Dtype::fp32:
      break;
  }
  return value;
}

/// The same for every value, in place.
void round_to(std::span<float> values, Dtype dtype);

/// The bits of round_to(value, dtype) in the format itself: 32, 16 or 8 of them.
std::uint32_t encode(float value, Dtype dtype);

/// The number that these bits stand for.
float decode(std::uint32_t bits, Dtype dtype);

/// Distance between neighbouring numbers of `dtype` at the magnitude of `at`; at 0 the smallest subnormal, NaN for a
/// value that is not finite.
double ulp(double at, Dtype dtype);

}  // namespace hbmscope
