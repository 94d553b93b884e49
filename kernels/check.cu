#include <algorithm>

#include "kernels/check.hpp"
#include "kernels/common.cuh"

namespace hbmscope::kernels {
namespace {

constexpr int kThreads = 256;

/// `nan` are the bits that only NaN and infinities have all. The checksum sums (place + 1) * bits modulo 2^64, so that
/// swapped elements show as well as changed ones.
template <class Bits>
__global__ void look(const Bits* at, std::int64_t elements, Bits nan, unsigned long long* sums) {
  unsigned long long nonfinite = 0, checksum = 0;
  for (std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x; i < elements;
       i += std::int64_t{gridDim.x} * kThreads) {
    const Bits bits = at[i];
    nonfinite += (bits & nan) == nan ? 1 : 0;
    checksum += (static_cast<unsigned long long>(i) + 1) * bits;
  }
  for (int lanes = kWarpSize / 2; lanes > 0; lanes /= 2) {
    nonfinite += __shfl_xor_sync(0xffffffffu, nonfinite, lanes);
    checksum += __shfl_xor_sync(0xffffffffu, checksum, lanes);
  }
  if (threadIdx.x % kWarpSize != 0) return;
  if (nonfinite != 0) atomicAdd(sums, nonfinite);
  atomicAdd(sums + 1, checksum);
}

}  // namespace

void launch_look(const void* at, std::int64_t elements, Dtype dtype, unsigned long long* sums, CUstream_st* stream) {
  const auto grid = static_cast<unsigned>(std::clamp<std::int64_t>(ceil_div(elements, kThreads), 1, 1 << 14));
  if (dtype == Dtype::fp32) {
    look<<<grid, kThreads, 0, stream>>>(static_cast<const std::uint32_t*>(at), elements, 0x7f800000u, sums);
  } else if (dtype == Dtype::fp8) {
    look<<<grid, kThreads, 0, stream>>>(static_cast<const std::uint8_t*>(at), elements, std::uint8_t{0x7f}, sums);
  } else {
    const std::uint16_t nan = dtype == Dtype::fp16 ? 0x7c00 : 0x7f80;
    look<<<grid, kThreads, 0, stream>>>(static_cast<const std::uint16_t*>(at), elements, nan, sums);
  }
  check_launch("check");
}

}  // namespace hbmscope::kernels
