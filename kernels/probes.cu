// Idea:    the roofs of the SM itself: mma.sync, wgmma and exp2 on operands that are on chip, and nothing else
// Reads:   the operands of the tensor probes, once
// Writes:  one number a warp
// On chip: mma.sync: registers; wgmma: A [64, 64] and B [256, 64] in SMEM, accumulators in registers
// Costs:   mma_sync_flops, wgmma_flops, exp2_operations
#include <bit>

#include "kernels/hopper.cuh"
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

/// What a CTA notes of its SM's clock.
class Stopwatch {
 public:
  __device__ explicit Stopwatch(SmClock* clocks) : clocks_(clocks), start_(now()) {}
  __device__ void stop() const {
    if (clocks_ == nullptr || threadIdx.x != 0) return;
    unsigned sm = 0;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm >= gridDim.x) return;  // numbers may have gaps (PTX ISA, %nsmid); there are as many places as CTAs
    const SmClock end = now();
    clocks_[sm] = {end.cycles - start_.cycles, end.nanoseconds - start_.nanoseconds};
  }

 private:
  __device__ static SmClock now() {
    SmClock t{};
    asm volatile("mov.u64 %0, %%clock64; mov.u64 %1, %%globaltimer;" : "=l"(t.cycles), "=l"(t.nanoseconds)::"memory");
    return t;
  }
  SmClock* clocks_;
  SmClock start_;
};

// ---- mma.sync ------------------------------------------------------------------------------------------------------

/// Two neighbouring elements of a row of 16: what lane l holds of an operand begins at column 2 (l % 4).
__device__ inline std::uint32_t pair_at(const std::uint32_t* operand, int row, int column) {
  return operand[(row * MmaSync::kDepth + column) / 2];
}

__global__ void __launch_bounds__(kThreads)
    mma_sync_kernel(const std::uint32_t* operands, float* sums, std::int64_t iterations, SmClock* clocks) {
  const Stopwatch stopwatch(clocks);
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
  stopwatch.stop();
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
constexpr std::size_t kWgmmaSmem = kWgmmaA + kWgmmaB + kPanelAlignment;

__global__ void __launch_bounds__(kThreads, 1)
    wgmma_kernel(const uint4* operands, float* sums, std::int64_t iterations, SmClock* clocks) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const Stopwatch stopwatch(clocks);
  extern __shared__ unsigned char smem_bytes[];
  const std::uint32_t a_tile = (smem_address(smem_bytes) + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;
  const std::uint32_t b_tile = a_tile + kWgmmaA;
  constexpr int kChunks = Wgmma::kDepth / 8;
  for (int n = static_cast<int>(threadIdx.x); n < (Wgmma::kRows + Wgmma::kColumns) * kChunks; n += kThreads) {
    const uint4 x = operands[n];
    const std::uint32_t to = a_tile + tile_offset<Wgmma::kDepth>(n / kChunks, n % kChunks);  // B follows A
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
  }
  publish_to_async_proxy();
  __syncthreads();

  float c[Wgmma::kColumns / 8][4] = {};
  const std::uint64_t a = panel_descriptor(a_tile), b = panel_descriptor(b_tile);
#pragma unroll 1
  for (std::int64_t k = 0; k < iterations; ++k) {
    fence_wgmma();
#pragma unroll
    for (int x = 0; x < Wgmma::kDepth; x += 16) {
      start_wgmma<BFloat16, OperandB::by_column>(c, further(a, x * 2), further(b, x * 2), 1);
    }
    commit_wgmma();
    wait_wgmma<0>();  // meanwhile the other warpgroup's are at work
  }
  stopwatch.stop();

  float sum = 0;
#pragma unroll
  for (const float(&block)[4] : c) sum += (block[0] + block[1]) + (block[2] + block[3]);
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

}  // namespace

void launch_mma_sync(const TensorProbe& probe, CUstream_st* stream) {
  mma_sync_kernel<<<grid_of(num_sms()), kThreads, 0, stream>>>(static_cast<const std::uint32_t*>(probe.operands),
                                                               probe.sums, probe.iterations, probe.clocks);
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
  allow_smem({}, reinterpret_cast<const void*>(wgmma_kernel), kWgmmaSmem, "wgmma");
  wgmma_kernel<<<grid_of(num_sms()), kThreads, kWgmmaSmem, stream>>>(static_cast<const uint4*>(probe.operands),
                                                                     probe.sums, probe.iterations, probe.clocks);
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
