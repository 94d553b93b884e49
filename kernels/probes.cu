// Idea:    the roofs of the SM itself: mma.sync, wgmma and exp2 on operands that are on chip, and nothing else
// Reads:   the operands of the tensor probes, once
// Writes:  one number a warp
// On chip: mma.sync: registers; wgmma: A [64, 64] and B [256, 64] in SMEM, accumulators in registers
// Costs:   mma_sync_flops, wgmma_flops, exp2_operations
#include <bit>

#include "kernels/common.cuh"
#include "kernels/tile.cuh"
#include "kernels/yardsticks.hpp"

namespace hbmscope::kernels {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpSize, kWarpgroups = kThreads / 128;

__device__ inline float sum_over_warp(float x) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

// ---- mma.sync ------------------------------------------------------------------------------------------------------

/// Two neighbouring elements of a row of 16: what lane l holds of an operand begins at column 2 (l % 4).
__device__ inline std::uint32_t pair_at(const std::uint32_t* operand, int row, int column) {
  return operand[(row * MmaSync::kDepth + column) / 2];
}

__global__ void __launch_bounds__(kThreads)
    mma_sync_kernel(const std::uint32_t* operands, float* sums, std::int64_t iterations) {
  constexpr int kM = MmaSync::kRows / 16, kN = MmaSync::kColumns / 8;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize, row = lane / 4, column = lane % 4 * 2;
  const std::uint32_t* const b_operand = operands + MmaSync::kRows * MmaSync::kDepth / 2;
  std::uint32_t a[kM][4], b[kN][2];
#pragma unroll
  for (int i = 0; i < kM; ++i) {
    a[i][0] = pair_at(operands, 16 * i + row, column);
    a[i][1] = pair_at(operands, 16 * i + row + 8, column);
    a[i][2] = pair_at(operands, 16 * i + row, column + 8);
    a[i][3] = pair_at(operands, 16 * i + row + 8, column + 8);
  }
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    b[n][0] = pair_at(b_operand, 8 * n + row, column);
    b[n][1] = pair_at(b_operand, 8 * n + row, column + 8);
  }
  float c[kM][kN][4] = {};
#pragma unroll 1
  for (std::int64_t k = 0; k < iterations; ++k) {
#pragma unroll
    for (int i = 0; i < kM; ++i) {
#pragma unroll
      for (int n = 0; n < kN; ++n) multiply_add<BFloat16>(c[i][n], a[i], b[n][0], b[n][1]);
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int n = 0; n < kN; ++n) sum += (c[i][n][0] + c[i][n][1]) + (c[i][n][2] + c[i][n][3]);
  }
  sum = sum_over_warp(sum);
  if (lane == 0) sums[blockIdx.x * kWarps + threadIdx.x / kWarpSize] = sum;
}

// ---- wgmma ---------------------------------------------------------------------------------------------------------

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
__device__ int has_wgmma = 1;
#else
__device__ int has_wgmma = 0;
#endif

constexpr std::uint32_t kWgmmaA = Wgmma::kRows * Wgmma::kDepth * 2, kWgmmaB = Wgmma::kColumns * Wgmma::kDepth * 2;
constexpr std::size_t kWgmmaSmem = kWgmmaA + kWgmmaB + 1024;  // so that the tiles can start on a multiple of 1024

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// A tile of rows of 128 bytes, chunks swizzled as in tile.cuh: groups of eight rows lie 1024 bytes apart. Bits 0-13
/// hold the address, 32-45 the distance of the groups, both in units of 16 bytes; 62-63 name the swizzle of 128 bytes.
__device__ inline std::uint64_t tile_descriptor(std::uint32_t address) {
  return std::uint64_t{(address & 0x3ffff) >> 4} | std::uint64_t{1} << 16 | std::uint64_t{1024 >> 4} << 32 |
         std::uint64_t{1} << 62;
}

#define HBMSCOPE_C4(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define HBMSCOPE_C16(i) HBMSCOPE_C4(i), HBMSCOPE_C4(i + 4), HBMSCOPE_C4(i + 8), HBMSCOPE_C4(i + 12)

/// c[64 x 256] += A[64 x 16] B[256 x 16]^T, under way when it returns.
__device__ inline void start_wgmma(float (&c)[128], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, 1, 1, 1, 0, 0;"
      : HBMSCOPE_C16(0), HBMSCOPE_C16(16), HBMSCOPE_C16(32), HBMSCOPE_C16(48), HBMSCOPE_C16(64), HBMSCOPE_C16(80),
        HBMSCOPE_C16(96), HBMSCOPE_C16(112)
      : "l"(a), "l"(b));
}

#undef HBMSCOPE_C4
#undef HBMSCOPE_C16
#endif

__global__ void __launch_bounds__(kThreads, 1)
    wgmma_kernel(const uint4* operands, float* sums, std::int64_t iterations) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char smem_bytes[];
  const std::uint32_t a_tile = (smem_address(smem_bytes) + 1023) / 1024 * 1024, b_tile = a_tile + kWgmmaA;
  constexpr int kChunks = Wgmma::kDepth / 8;
  for (int n = static_cast<int>(threadIdx.x); n < (Wgmma::kRows + Wgmma::kColumns) * kChunks; n += kThreads) {
    const uint4 x = operands[n];
    const std::uint32_t to = a_tile + tile_offset<Wgmma::kDepth>(n / kChunks, n % kChunks);  // B follows A
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the tensor cores read SMEM on a path of their own
  __syncthreads();

  float c[128] = {};
  const std::uint64_t a = tile_descriptor(a_tile), b = tile_descriptor(b_tile);
#pragma unroll 1
  for (std::int64_t k = 0; k < iterations; ++k) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int x = 0; x < Wgmma::kDepth; x += 16) start_wgmma(c, a + x * 2 / 16, b + x * 2 / 16);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");  // meanwhile the other warpgroup's are at work
  }

  float sum = 0;
#pragma unroll
  for (int i = 0; i < 128; ++i) sum += c[i];
  sum = sum_over_warp(sum);
  __shared__ float partial[kWarps];
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  if (threadIdx.x % kWarpSize == 0) partial[warp] = sum;
  __syncthreads();
  if (threadIdx.x % 128 != 0) return;
  sums[blockIdx.x * kWarpgroups + threadIdx.x / 128] =
      (partial[warp] + partial[warp + 1]) + (partial[warp + 2] + partial[warp + 3]);
#endif
}

// ---- exp2 ----------------------------------------------------------------------------------------------------------

__global__ void __launch_bounds__(kThreads) exp2_kernel(float* means, std::int64_t iterations) {
  constexpr int kChains = 8;
  float x[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) x[i] = static_cast<float>(threadIdx.x * kChains + i) / (kThreads * kChains);
#pragma unroll 4
  for (std::int64_t k = 0; k < iterations; ++k) {
#pragma unroll
    for (float& of : x) of = exp2_fast(-of);
  }
  float sum = 0;
#pragma unroll
  for (const float of : x) sum += of;
  sum = sum_over_warp(sum);
  if (threadIdx.x % kWarpSize == 0) {
    means[blockIdx.x * (kThreads / kWarpSize) + threadIdx.x / kWarpSize] = sum / (kChains * kWarpSize);
  }
}

constexpr int kExp2CtasPerSm = 2048 / kThreads;

std::int64_t num_sms() {
  int device = 0, sms = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  return sms;
}

}  // namespace

void launch_mma_sync(const TensorProbe& probe, CUstream_st* stream) {
  mma_sync_kernel<<<grid_of(num_sms()), kThreads, 0, stream>>>(static_cast<const std::uint32_t*>(probe.operands),
                                                               probe.sums, probe.iterations);
  check_launch("mma_sync");
}
std::int64_t mma_sync_results() {
  return num_sms() * kWarps;
}
Flop mma_sync_flops(const TensorProbe& probe) {
  return Count(mma_sync_results()) *
         (Count(probe.iterations) * Flop(2 * MmaSync::kRows * MmaSync::kColumns * MmaSync::kDepth));
}

std::string wgmma_unsupported() {
  int device = 0, major = 0, minor = 0, built = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess) {
    cudaGetLastError();
    return "there is no CUDA device";
  }
  if (major != 9 || minor != 0) {
    return "wgmma is an instruction of compute capability 9.0, and this device has " + std::to_string(major) + "." +
           std::to_string(minor);
  }
  if (cudaMemcpyFromSymbol(&built, has_wgmma, sizeof built) != cudaSuccess || built == 0) {
    cudaGetLastError();
    return "this build has no code for sm_90a, which wgmma needs";
  }
  return {};
}
void launch_wgmma(const TensorProbe& probe, CUstream_st* stream) {
  allow_smem(reinterpret_cast<const void*>(wgmma_kernel), kWgmmaSmem, "wgmma");
  wgmma_kernel<<<grid_of(num_sms()), kThreads, kWgmmaSmem, stream>>>(static_cast<const uint4*>(probe.operands),
                                                                     probe.sums, probe.iterations);
  check_launch("wgmma");
}
std::int64_t wgmma_results() {
  return num_sms() * kWarpgroups;
}
Flop wgmma_flops(const TensorProbe& probe) {
  return Count(wgmma_results()) * (Count(probe.iterations) * Flop(2 * Wgmma::kRows * Wgmma::kColumns * Wgmma::kDepth));
}

double expected_sum(const std::uint16_t* host, int rows, int columns, int depth, std::int64_t iterations) {
  const auto column_sum = [=](const std::uint16_t* operand, int of_rows, int k) {
    double sum = 0;
    for (int r = 0; r < of_rows; ++r) {
      sum += static_cast<double>(std::bit_cast<float>(std::uint32_t{operand[std::int64_t{r} * depth + k]} << 16));
    }
    return sum;
  };
  double sum = 0;
  for (int k = 0; k < depth; ++k)
    sum += column_sum(host, rows, k) * column_sum(host + std::int64_t{rows} * depth, columns, k);
  return sum * static_cast<double>(iterations);
}

void launch_exp2(const Exp2Probe& probe, CUstream_st* stream) {
  exp2_kernel<<<grid_of(num_sms() * kExp2CtasPerSm), kThreads, 0, stream>>>(probe.means, probe.iterations);
  check_launch("exp2");
}
std::int64_t exp2_results() {
  return num_sms() * kExp2CtasPerSm * kWarps;
}
Count exp2_operations(const Exp2Probe& probe) {
  return Count(exp2_results()) * (Count(probe.iterations) * Count(kWarpSize * 8));
}

}  // namespace hbmscope::kernels
