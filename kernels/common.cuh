#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/attention.hpp"

/// The few instructions that the kernels are made of, each under the name of what it does.
namespace hbmscope::kernels {

using Half = __half;
using BFloat16 = __nv_bfloat16;
/// FP8 E4M3: no infinity, largest 448.
struct Fp8 {
  std::uint8_t bits;
};

constexpr int kWarpSize = 32;
constexpr float kLn2 = 0.69314718055994530942f;

constexpr __host__ __device__ std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// A 1-D grid; throws beyond 2^31 - 1 CTAs.
unsigned grid_of(std::int64_t ctas);
/// SMs of the current device.
std::int64_t num_sms();
/// Throws for a launch that did not start; `what` names the kernel.
void check_launch(const char* what);
/// A counter on the device for CTAs to draw from: 0 when the launch starts, which has to leave it at 0. Launches that
/// overlap on several streams must not share one, and 64 take turns.
unsigned* draw_counter(const char* what);
/// Raises a kernel's limit of dynamic SMEM above the default 48 KiB.
void allow_smem(const Call& call, const void* kernel, std::size_t bytes, const char* what);

// ---- byte counters
// ---------------------------------------------------------------------------------------------------

/// Each thread counts the bytes that it asks global memory for, by tensor and direction, and adds them to the totals
/// when its CTA is done. The timed variant of a kernel holds an empty one, so nothing is left of it.
template <bool kCounted>
struct ByteCounter {
  __device__ void read(Tensor, int) {}
  __device__ void wrote(Tensor, int) {}
  __device__ void flush(unsigned long long*) const {}
};

template <>
struct ByteCounter<true> {
  unsigned long long bytes[2 * kTensorCount] = {};
  __device__ void read(Tensor t, int n) { bytes[2 * static_cast<int>(t)] += static_cast<unsigned long long>(n); }
  __device__ void wrote(Tensor t, int n) { bytes[2 * static_cast<int>(t) + 1] += static_cast<unsigned long long>(n); }
  __device__ void flush(unsigned long long* totals) const {
#pragma unroll
    for (int i = 0; i < static_cast<int>(2 * kTensorCount); ++i) {
      if (bytes[i] != 0) atomicAdd(totals + i, bytes[i]);
    }
  }
};

// ---- asynchronous copies from global to shared memory (sm_80)
// --------------------------------------------------------

__device__ inline std::uint32_t smem_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

/// Whether other CTAs will soon read the same again. What they will not is the first to leave L2.
enum class Reuse { soon, none };
/// Copies the first `bytes` (0 to 16) of 16 and fills the rest with zeros; past L1, which has no use for a tile.
template <Reuse kReuse = Reuse::soon>
__device__ inline void copy_async_16(std::uint32_t to, const void* from, int bytes) {
  if constexpr (kReuse == Reuse::soon) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  } else {
    asm volatile(
        "{ .reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0; "
        "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, policy; }" ::"r"(to),
        "l"(from), "r"(bytes)
        : "memory");
  }
}
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most `kPending` of the committed groups are under way.
template <int kPending>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// ---- tensor cores
// ----------------------------------------------------------------------------------------------------

/// Four 8 x 8 matrices of 16-bit elements from SMEM, one row address a lane (8 lanes a matrix).
__device__ inline void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
/// The same, each matrix transposed on the way.
__device__ inline void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// c[16 x 8] += a[16 x 16] b[16 x 8], fp32 accumulators. Lane l holds rows l/4 and l/4 + 8, columns 2 (l%4) and the
/// next.
template <class T>
__device__ inline void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);
template <>
__device__ inline void multiply_add<Half>(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                          std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ inline void multiply_add<BFloat16>(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                              std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two fp32 rounded to nearest even, the first in the low half.
template <class T>
__device__ inline std::uint32_t pack(float low, float high);
template <>
__device__ inline std::uint32_t pack<Half>(float low, float high) {
  const __half2 v = __floats2half2_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(v);
}
template <>
__device__ inline std::uint32_t pack<BFloat16>(float low, float high) {
  const __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(v);
}

template <class T>
__device__ inline float to_float(T x);
template <>
__device__ inline float to_float<float>(float x) {
  return x;
}
template <>
__device__ inline float to_float<Half>(Half x) {
  return __half2float(x);
}
template <>
__device__ inline float to_float<BFloat16>(BFloat16 x) {
  return __bfloat162float(x);
}

template <class T>
__device__ inline T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline Half from_float<Half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline BFloat16 from_float<BFloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// ---- numbers
// ---------------------------------------------------------------------------------------------------------

/// 2^x on the special function unit; 2^-inf is 0.
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

constexpr float kMinusInfinity = -__builtin_huge_valf();
constexpr float kLeastFinite = -3.402823466e38f;

/// Over the four lanes that hold one row of an accumulator.
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/// This thread's place in its warp, read anew: what follows from it takes no registers before and after its use.
__device__ inline int lane_now() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

/// And in its CTA.
__device__ inline int thread_now() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// ---- places
// ----------------------------------------------------------------------------------------------------------

/// Which query tile of which head is the `n`th in the order of the grid: query tile fastest, then head, then batch.
struct Place {
  int tile, head, batch;
};
__device__ inline Place place_of(const AttentionArgs& a, int tiles, unsigned number) {
  const unsigned in_head = tiles, num_heads = a.num_heads, heads = a.batch * num_heads;  // all below 2^31
  unsigned tile = number % in_head, batch_head = number / in_head;
  if (a.order == CtaOrder::longest_first) tile = in_head - 1 - tile;
  if (a.order == CtaOrder::longest_first_interleaved) {
    tile = in_head - 1 - number / heads;
    batch_head = number % heads;
  }
  return {static_cast<int>(tile), static_cast<int>(batch_head % num_heads), static_cast<int>(batch_head / num_heads)};
}
/// That of this CTA of a 1-D grid.
__device__ inline Place place_of_cta(const AttentionArgs& a, int tiles) {
  // Read anew at each call: a kernel that asks again at its end need not keep the answer in registers all along.
  unsigned cta;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(cta));
  return place_of(a, tiles, cta);
}
/// First element of head `head` of a [batch, heads, seqlen, dim] tensor.
__device__ inline std::int64_t head_offset(int batch, int head, int heads, std::int64_t seqlen, std::int64_t dim) {
  return (std::int64_t{batch} * heads + head) * seqlen * dim;
}

}  // namespace hbmscope::kernels
