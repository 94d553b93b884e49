#pragma once
#include "kernels/gemm_tile.cuh"

namespace hbmscope::kernels {

/// The product on Hopper, B by depth: one warpgroup multiplies straight from SMEM, 64 rows of C at a time.
template <class T, class Tile_>
struct WgmmaProduct {
  using Tile = Tile_;
  static constexpr int kM = Tile::kRows / 64, kN = Tile::kColumns / 8;
  static constexpr std::uint32_t kPanel = kPanelWidth * 2 * Tile::kDepth;  ///< bytes of one of V's panels
  static constexpr std::uint32_t kStagedPanel = kPanelWidth * 2 * Tile::kRows;  ///< bytes of one of C's
  static_assert(Tile::kWarps == 4, "one warpgroup");
  float c[kM][kN][4] = {};

  __device__ explicit WgmmaProduct(int) {}

  /// HBM read: a slice of B, [kDepth, kColumns] in panels of 64 columns.
  template <class Counter>
  __device__ static void load_operand_b(std::uint32_t slice, const T* from, std::int64_t stride, int columns, int depth,
                                        Tensor tensor, Counter& counter) {
#pragma unroll
    for (int x = 0; x < Tile::kColumns; x += kPanelWidth) {
      load_slice<Tile::kDepth, kPanelWidth, Tile::kThreads>(slice + x / kPanelWidth * kPanel, from + x, stride, depth,
                                                            columns - x, tensor, counter);
    }
  }

  /// C += A B over one slice, under way when it returns.
  __device__ void multiply_slice(std::uint32_t a_slice, std::uint32_t b_slice) {
    const std::uint64_t a = panel_descriptor(a_slice), b = panel_descriptor(b_slice, kPanel);
    fence_wgmma();
#pragma unroll
    for (int step = 0; step < Tile::kDepth / 16; ++step) {
#pragma unroll
      for (int i = 0; i < kM; ++i) {
        start_wgmma<T, OperandB::by_depth>(c[i], further(a, i * (64 * kPanelWidth * 2) + step * (16 * 2)),
                                           further(b, step * (16 * kPanelWidth * 2)), 1);
      }
    }
    commit_wgmma();
  }
  /// Waits for the slice before, whose place the next copies take, and shows the tensor cores what was copied since.
  __device__ void finish_slice() {
    wait_wgmma<0>();
    publish_to_async_proxy();
  }

  /// Rounds the warp's share of C to T and lays it into SMEM, in panels of 64 columns.
  __device__ void stage(std::uint32_t smem) const {
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize, lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
    for (int i = 0; i < kM; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 64 * i + 16 * warp + 8 * half + lane / 4;
#pragma unroll
        for (int n = 0; n < kN; ++n) {
          const std::uint32_t to = smem + n / 8 * kStagedPanel + tile_offset<kPanelWidth>(row, n % 8) + 4 * (lane % 4);
          asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(pack<T>(c[i][n][2 * half], c[i][n][2 * half + 1]))
                       : "memory");
        }
      }
    }
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
      start_tensor_store(to.map, smem + x / kPanelWidth * kStagedPanel, to.column + x, to.row, to.head, to.batch);
    }
    commit_tensor_stores();
    wait_tensor_stores();
    counter.wrote(tensor, 2 * min(rows, Tile::kRows) * min(columns, Tile::kColumns));
  }
};

}  // namespace hbmscope::kernels
