#pragma once
#include "kernels/gemm_tile.cuh"

namespace hbmscope::kernels {

/// A warpgroup's tile of C, in registers: fragments of 64 rows by 8 columns as start_wgmma has them. Slices of both
/// operands are panels of 64 columns in SMEM: one of A, [kRows, 64]; B by columns is one too, [kColumns, 64], and B by
/// depth is [64, kColumns], a panel for each 64 columns.
template <class T, int kRows, int kColumns, OperandB kB>
struct WgmmaTile {
  static constexpr int kDepth = 64, kM = kRows / 64, kN = kColumns / 8;
  static constexpr std::uint32_t kPanelB = kPanelWidth * 2 * kDepth, kPanelC = kPanelWidth * 2 * kRows;  // bytes
  float c[kM][kN][4];

  /// C += A B over one slice, or C = A B without `add`. Under way when it returns.
  __device__ void multiply_slice(std::uint32_t a_slice, std::uint32_t b_slice, bool add) {
    constexpr std::uint32_t kStepB = kB == OperandB::by_column ? 16 * 2 : 16 * kPanelWidth * 2;  // bytes
    const std::uint64_t a = panel_descriptor(a_slice), b = panel_descriptor(b_slice, kPanelB);
    fence_wgmma();
#pragma unroll
    for (int step = 0; step < kDepth / 16; ++step) {
#pragma unroll
      for (int i = 0; i < kM; ++i) {
        start_wgmma<T, kB>(c[i], further(a, i * (64 * kPanelWidth * 2) + step * (16 * 2)), further(b, step * kStepB),
                           add || step > 0);
      }
    }
    commit_wgmma();
  }
  /// Rounds a thread's share to T and lays it into SMEM, in panels of 64 columns; its warp counts within the warpgroup.
  __device__ void stage(std::uint32_t to, int warp, int lane) const {
#pragma unroll
    for (int i = 0; i < kM; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 64 * i + 16 * warp + 8 * half + lane / 4;
#pragma unroll
        for (int n = 0; n < kN; ++n) {
          const std::uint32_t at = to + n / 8 * kPanelC + tile_offset<kPanelWidth>(row, n % 8);
          store_smem(at + 4 * (lane % 4), pack<T>(c[i][n][2 * half], c[i][n][2 * half + 1]));
        }
      }
    }
    publish_to_async_proxy();
  }
};

/// The product of a CTA of one warpgroup, B by depth: what multiply_slices asks for (gemm.cuh).
template <class T, class Tile_>
struct WgmmaProduct : WgmmaTile<T, Tile_::kRows, Tile_::kColumns, OperandB::by_depth> {
  using Tile = Tile_;
  using OfC = WgmmaTile<T, Tile::kRows, Tile::kColumns, OperandB::by_depth>;
  static_assert(Tile::kWarps == 4 && Tile::kDepth == OfC::kDepth, "one warpgroup");

  __device__ explicit WgmmaProduct(int) : OfC{} {}

  /// HBM read: a slice of B, [kDepth, kColumns].
  template <class Counter>
  __device__ static void load_operand_b(std::uint32_t slice, const T* from, std::int64_t stride, int columns, int depth,
                                        Tensor tensor, Counter& counter) {
#pragma unroll
    for (int x = 0; x < Tile::kColumns; x += kPanelWidth) {
      load_slice<Tile::kDepth, kPanelWidth, Tile::kThreads>(slice + x / kPanelWidth * OfC::kPanelB, from + x, stride,
                                                            depth, columns - x, tensor, counter);
    }
  }
  __device__ void multiply_slice(std::uint32_t a_slice, std::uint32_t b_slice) {
    OfC::multiply_slice(a_slice, b_slice, true);
  }
  __device__ void stage(std::uint32_t smem) const {
    const int thread = static_cast<int>(threadIdx.x);
    OfC::stage(smem, thread / kWarpSize, thread % kWarpSize);
  }
  /// Waits for the slice before, whose place the next copies take, and shows the tensor cores what was copied since.
  __device__ void finish_slice() {
    wait_wgmma<0>();
    publish_to_async_proxy();
  }

  /// HBM write: the valid `rows` by `columns` elements of the staged tile.
  template <class Counter>
  __device__ static void store(const TileOutput<T>& to, int rows, int columns, std::uint32_t smem, Tensor tensor,
                               Counter& counter) {
    if (threadIdx.x != 0) return;
#pragma unroll
    for (int x = 0; x < Tile::kColumns; x += kPanelWidth) {
      if (x >= columns) break;
      start_tensor_store(to.map, smem + x / kPanelWidth * OfC::kPanelC, to.column + x, to.row, to.head, to.batch);
    }
    commit_tensor_stores();
    wait_tensor_stores();
    counter.wrote(tensor, 2 * min(rows, Tile::kRows) * min(columns, Tile::kColumns));
  }
};

}  // namespace hbmscope::kernels
