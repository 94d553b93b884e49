#include "core/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hbmscope {

namespace {

template <float (*kRound)(float)>
void round_all(std::span<float> values) {
  constexpr std::size_t kBlock = 16;  // a fixed trip count, which compilers turn into vector code at every level
  const std::size_t whole = values.size() / kBlock * kBlock;
  for (std::size_t first = 0; first < whole; first += kBlock) {
    float* block = values.data() + first;
    for (std::size_t i = 0; i < kBlock; ++i) block[i] = kRound(block[i]);
  }
  for (float& value : values.subspan(whole)) value = kRound(value);
}

int total_bits(const DtypeInfo& type) {
  return static_cast<int>(8 * type.bytes);
}

std::uint32_t nan_code(const DtypeInfo& type) {
  const std::uint32_t all_ones = (1U << (total_bits(type) - 1)) - 1U;
  if (type.dtype == Dtype::fp8) return all_ones;  // the only NaN of E4M3
  return all_ones ^ ((1U << (type.mantissa_bits - 1)) - 1U);
}

}  // namespace

void round_to(std::span<float> values, Dtype dtype) {
  switch (dtype) {
    case Dtype::fp16:
      return round_all<rounding::fp16>(values);
    case Dtype::bf16:
      return round_all<rounding::bf16>(values);
    case Dtype::fp8:
      return round_all<rounding::fp8>(values);
    case Dtype::fp32:
      return;
  }
}

std::uint32_t encode(float value, Dtype dtype) {
  const DtypeInfo& type = info(dtype);
  const float rounded = round_to(value, dtype);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(rounded);
  if (dtype == Dtype::fp32) return bits;
  const std::uint32_t sign = (bits >> 31) << (total_bits(type) - 1);
  if (std::isnan(rounded)) return sign | nan_code(type);
  const float magnitude = std::fabs(rounded);
  if (std::isinf(magnitude)) return sign | (nan_code(type) & ~(1U << (type.mantissa_bits - 1)));
  if (static_cast<double>(magnitude) < std::ldexp(1.0, type.min_exponent)) {
    const double steps = std::ldexp(static_cast<double>(magnitude), type.mantissa_bits - type.min_exponent);
    return sign | static_cast<std::uint32_t>(steps);
  }
  const auto rebias = static_cast<std::uint32_t>(127 - (1 - type.min_exponent));
  return sign | (((bits & ~rounding::kSign) >> (23 - type.mantissa_bits)) - (rebias << type.mantissa_bits));
}

float decode(std::uint32_t bits, Dtype dtype) {
  const DtypeInfo& type = info(dtype);
  if (dtype == Dtype::fp32) return std::bit_cast<float>(bits);
  const std::uint32_t sign_bit = 1U << (total_bits(type) - 1);
  const std::uint32_t magnitude = bits & (sign_bit - 1U);
  const std::uint32_t fraction = magnitude & ((1U << type.mantissa_bits) - 1U);
  const std::uint32_t exponent = magnitude >> type.mantissa_bits;
  const std::uint32_t top_exponent = (sign_bit - 1U) >> type.mantissa_bits;
  float result = 0;
  if (dtype == Dtype::fp8 ? magnitude == nan_code(type) : (exponent == top_exponent && fraction != 0)) {
    result = std::numeric_limits<float>::quiet_NaN();
  } else if (dtype != Dtype::fp8 && exponent == top_exponent) {
    result = std::numeric_limits<float>::infinity();
  } else {
    const std::uint32_t implicit_one = exponent == 0 ? 0U : 1U << type.mantissa_bits;
    const int power = static_cast<int>(std::max(exponent, 1U)) - 1 + type.min_exponent - type.mantissa_bits;
    result = std::ldexp(static_cast<float>(fraction | implicit_one), power);
  }
  return std::copysign(result, (bits & sign_bit) != 0 ? -1.0F : 1.0F);
}

double ulp(double at, Dtype dtype) {
  if (!std::isfinite(at)) return std::numeric_limits<double>::quiet_NaN();
  const DtypeInfo& type = info(dtype);
  const int exponent = at == 0 ? type.min_exponent : std::max(std::ilogb(at), type.min_exponent);
  return std::ldexp(1.0, exponent - type.mantissa_bits);
}

}  // namespace hbmscope
