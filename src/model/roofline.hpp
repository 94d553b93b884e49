#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "core/units.hpp"
#include "model/traffic.hpp"

namespace hbmscope {

/// Which roof a kernel meets (Williams, Waterman and Patterson, 2009): memory left of the ridge, compute right of it.
enum class Bound : std::uint8_t { memory, compute };

constexpr std::string_view name(Bound bound) {
  return bound == Bound::memory ? "memory" : "compute";
}

struct Roofline {
  FlopPerByte intensity;
  FlopPerByte ridge;  ///< peak over bandwidth
  Bound bound;
  FlopPerSecond attainable;  ///< min(peak, intensity * bandwidth)
};

constexpr Roofline roofline(Flop flop, Bytes bytes, FlopPerSecond peak, BytesPerSecond bandwidth) {
  const FlopPerByte intensity = flop / bytes, ridge = peak / bandwidth;
  const FlopPerSecond slope = intensity * bandwidth;
  return {intensity, ridge, intensity < ridge ? Bound::memory : Bound::compute, {std::min(peak.value, slope.value)}};
}

}  // namespace hbmscope
