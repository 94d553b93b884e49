#pragma once
#include "kernels/hopper.cuh"
#include "kernels/tile.cuh"

/// One tile of a matrix product on wgmma, by one warpgroup: C[kRows, kColumns] = A[kRows, depth] B[depth, kColumns],
/// 16-bit operands in SMEM, fp32 accumulators. The depth comes in slices of 64, which another warp copies: where slice
/// n of A and B is (`a`, `b`), that it has come (`wait_full`) and that a warp is done with it (`release`) is the
/// caller's to say, `Slices`.
namespace hbmscope::kernels {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// A warpgroup's tile of C, in registers: fragments of 64 rows by 8 columns as start_wgmma has them.
template <class T, int kRows, int kColumns, OperandB kB>
struct WgmmaTile {
  static constexpr int kDepth = 64;  ///< of a slice: one panel of A, [kRows, 64]
  float c[kRows / 64][kColumns / 8][4];

  /// C = A B over slices `first` to `last` - 1, of which the last is under way when it returns.
  template <class Slices>
  __device__ void multiply(const Slices& smem, unsigned first, unsigned last) {
    constexpr std::uint32_t kStepB = kB == OperandB::by_column ? 16 * 2 : 16 * kPanelWidth * 2;  // bytes
#pragma unroll 1
    for (unsigned n = first; n < last; ++n) {
      smem.wait_full(n);
      const std::uint64_t a = panel_descriptor(smem.a(n)), b = panel_descriptor(smem.b(n), kPanelWidth * 2 * kDepth);
      fence_wgmma();
#pragma unroll
      for (int step = 0; step < kDepth / 16; ++step) {
#pragma unroll
        for (int i = 0; i < kRows / 64; ++i) {
          start_wgmma<T, kB>(c[i], further(a, i * (64 * kPanelWidth * 2) + step * (16 * 2)), further(b, step * kStepB),
                             n > first || step > 0);
        }
      }
      commit_wgmma();
      if (n > first) {
        wait_wgmma<1>();
        smem.release(n - 1);
      }
    }
  }
  template <class Slices>
  __device__ void finish(const Slices& smem, unsigned last) {
    wait_wgmma<0>();
    smem.release(last - 1);
  }

  /// Rounds it to T and lays it into SMEM, in panels of 64 columns.
  __device__ void stage(std::uint32_t to) const {
    const int warp = thread_now() % 128 / kWarpSize, lane = lane_now();
#pragma unroll
    for (int i = 0; i < kRows / 64; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 64 * i + 16 * warp + 8 * half + lane / 4;
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n) {
          const std::uint32_t at = to + n / 8 * (kRows * kPanelWidth * 2) + tile_offset<kPanelWidth>(row, n % 8);
          store_smem(at + 4 * (lane % 4), pack<T>(c[i][n][2 * half], c[i][n][2 * half + 1]));
        }
      }
    }
    publish_to_async_proxy();
  }
};

#endif

}  // namespace hbmscope::kernels
