#include <cuda_fp8.h>

#include <algorithm>
#include <type_traits>

#include "kernels/common.cuh"
#include "kernels/random_inputs.hpp"

// The method is described at RandomInputs; all of it is whole-number arithmetic up to the last scaling, so the GPU's
// elements are bitwise those of the CPU.
namespace hbmscope::kernels {
namespace {

struct Segment {
  std::int32_t start;
  std::uint32_t drop;
};
constexpr int kKnotBits = 6, kFractionBits = 23 - kKnotBits;
constexpr int kThreads = 256;

__host__ __device__ inline std::uint64_t hash(std::uint64_t key, std::uint64_t counter) {
  std::uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

__device__ inline float normal(std::uint32_t bits, const Segment* segments) {
  const std::uint32_t k = (bits >> 8) | 1u;
  const std::uint32_t floating = __float_as_uint(static_cast<float>(static_cast<std::int32_t>(k)));
  const Segment segment = segments[(floating >> kFractionBits) - (127u << kKnotBits)];
  const std::uint32_t fraction = floating & ((1u << kFractionBits) - 1u);
  const auto fallen =
      static_cast<std::int32_t>((segment.drop * fraction + (1u << (kFractionBits - 1))) >> kFractionBits);
  const float magnitude = static_cast<float>(segment.start - fallen) * 0x1p-20f;
  return __uint_as_float(__float_as_uint(magnitude) | (bits << 31));
}

/// As the CPU rounds.
template <class T>
__device__ inline T rounded(float x) {
  if constexpr (std::is_same_v<T, Fp8>) {
    return {__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3)};
  } else {
    return from_float<T>(x);
  }
}

/// One thread a pair of neighbouring columns of one row.
template <class T>
__global__ void random_rows(T* to, std::uint64_t key, std::int64_t heads, std::int64_t rows, int columns,
                            std::int64_t pairs, const Segment* segments) {
  const int pairs_per_row = (columns + 1) / 2;
  for (std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x; i < pairs;
       i += std::int64_t{gridDim.x} * kThreads) {
    const std::int64_t row_of_all = i / pairs_per_row;
    const int pair = static_cast<int>(i % pairs_per_row);
    const std::int64_t row = row_of_all % rows, head = row_of_all / rows % heads, batch = row_of_all / rows / heads;
    const std::uint64_t row_key =
        hash(hash(hash(key, static_cast<std::uint64_t>(batch)), static_cast<std::uint64_t>(head)),
             static_cast<std::uint64_t>(row));
    const std::uint64_t both = hash(row_key, static_cast<std::uint64_t>(pair));
    T* at = to + row_of_all * columns + 2 * pair;
    at[0] = rounded<T>(normal(static_cast<std::uint32_t>(both), segments));
    if (2 * pair + 1 < columns) at[1] = rounded<T>(normal(static_cast<std::uint32_t>(both >> 32), segments));
  }
}

}  // namespace

void launch_random_inputs(void* to, Tensor tensor, const AttentionShape& s, std::uint64_t seed, const void* segments,
                          CUstream_st* stream) {
  const bool query = tensor == Tensor::Q;
  const std::int64_t heads = query ? s.num_heads : s.num_kv_heads, rows = query ? s.seqlen_q : s.seqlen_kv;
  const auto columns = static_cast<int>(tensor == Tensor::V ? s.head_dim_v : s.head_dim);
  const std::int64_t pairs = s.batch * heads * rows * ((columns + 1) / 2);
  const std::uint64_t key = hash(seed, static_cast<std::uint64_t>(tensor));
  const auto* table = static_cast<const Segment*>(segments);
  const auto grid = static_cast<unsigned>(std::min<std::int64_t>(ceil_div(pairs, kThreads), 1 << 16));
  const auto run = [&](auto* typed) {
    random_rows<<<grid, kThreads, 0, stream>>>(typed, key, heads, rows, columns, pairs, table);
  };
  if (s.dtype == Dtype::fp32) run(static_cast<float*>(to));
  if (s.dtype == Dtype::fp16) run(static_cast<Half*>(to));
  if (s.dtype == Dtype::bf16) run(static_cast<BFloat16*>(to));
  if (s.dtype == Dtype::fp8) run(static_cast<Fp8*>(to));
  check_launch("random_inputs");
}

}  // namespace hbmscope::kernels
