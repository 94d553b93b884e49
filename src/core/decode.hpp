#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/rounding.hpp"

namespace hbmscope {

/// binary16 to binary32, exactly.
inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16, magnitude = half & 0x7fffU;
  // Exponents differ by 112. A product with 2^112 moves them and makes subnormals of binary16 normal on the way.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  const std::uint32_t bits =
      magnitude >= 0x7c00U ? 0x7f800000U | (magnitude & 0x3ffU) << 13 : std::bit_cast<std::uint32_t>(scaled);
  return std::bit_cast<float>(bits | sign);
}

/// Appends the elements of an array as they lie in memory.
inline void decode(std::span<const std::byte> from, Dtype dtype, std::vector<float>& to) {
  const auto size = static_cast<std::size_t>(info(dtype).bytes);
  for (std::size_t i = 0; i + size <= from.size(); i += size) {
    if (dtype == Dtype::fp32) {
      float x = 0;
      std::memcpy(&x, &from[i], sizeof x);
      to.push_back(x);
      continue;
    }
    if (dtype == Dtype::fp8) {
      to.push_back(decode(std::to_integer<std::uint32_t>(from[i]), dtype));
      continue;
    }
    std::uint16_t x = 0;
    std::memcpy(&x, &from[i], sizeof x);
    to.push_back(dtype == Dtype::fp16 ? half_to_float(x) : std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16));
  }
}

}  // namespace hbmscope
