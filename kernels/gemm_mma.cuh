#pragma once
#include "kernels/gemm_tile.cuh"

namespace hbmscope::kernels {

/// The product on mma.sync (sm_80 and later): each warp owns kM blocks of 16 rows by 64 columns of C.
template <class T, class Tile_, OperandB kB>
struct MmaProduct {
  using Tile = Tile_;
  static constexpr int kWarpColumns = 64, kWarpsAcross = Tile::kColumns / kWarpColumns;
  static constexpr int kWarpRows = Tile::kRows * kWarpsAcross / Tile::kWarps, kM = kWarpRows / 16;
  static_assert(Tile::kColumns % kWarpColumns == 0 && Tile::kWarps % kWarpsAcross == 0 && kWarpRows % 16 == 0,
                "warps tile C");
  float c[kM][kWarpColumns / 8][4] = {};  ///< as multiply_add leaves them
  int row, column;                        ///< where in the tile the warp's share of C begins
  bool idle;                              ///< all of its columns lie beyond the last

  __device__ explicit MmaProduct(int columns) {
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    row = warp / kWarpsAcross * kWarpRows;
    column = warp % kWarpsAcross * kWarpColumns;
    idle = column >= columns;
  }

  /// HBM read: a slice of B, [kColumns, kDepth] or [kDepth, kColumns].
  template <class Counter>
  __device__ static void load_operand_b(std::uint32_t slice, const T* from, std::int64_t stride, int columns, int depth,
                                        Tensor tensor, Counter& counter) {
    if constexpr (kB == OperandB::by_column) {
      load_slice<Tile::kColumns, Tile::kDepth, Tile::kThreads>(slice, from, stride, columns, depth, tensor, counter);
    } else {
      load_slice<Tile::kDepth, Tile::kColumns, Tile::kThreads>(slice, from, stride, depth, columns, tensor, counter);
    }
  }

  /// C += A B over one slice. Each fragment of B is called for one step before it is multiplied.
  __device__ void multiply_slice(std::uint32_t a_slice, std::uint32_t b_slice) {
    if (idle) return;
    constexpr int kDepth = Tile::kDepth, kSteps = kDepth / 16, kBlocks = kWarpColumns / 16;
    constexpr std::uint32_t kRows16 = 16 * kDepth * 2, kDepth16 = 16 * Tile::kColumns * 2;  // bytes
    const std::uint32_t a_at = block_address<kDepth>(a_slice, row, 0);
    const std::uint32_t b_at = kB == OperandB::by_column ? block_address_b<kDepth>(b_slice, column, 0)
                                                         : block_address<Tile::kColumns>(b_slice, 0, column);
    std::uint32_t a[kM][4], b[2][4];
    const auto load_b = [&](int step, int block) {
      std::uint32_t(&to)[4] = b[(step * kBlocks + block) & 1];
      if constexpr (kB == OperandB::by_column) {
        load_matrices(to, to_the_right(b_at, 16 * step) + block * kRows16);
      } else {
        load_matrices_transposed(to, to_the_right(b_at, 16 * block) + step * kDepth16);
      }
    };
    load_b(0, 0);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < kM; ++i) load_matrices(a[i], to_the_right(a_at, 16 * step) + i * kRows16);
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        if (block + 1 < kBlocks) {
          load_b(step, block + 1);
        } else if (step + 1 < kSteps) {
          load_b(step + 1, 0);
        }
        const std::uint32_t(&now)[4] = b[(step * kBlocks + block) & 1];
#pragma unroll
        for (int i = 0; i < kM; ++i) {
          multiply_add<T>(c[i][2 * block], a[i], now[0], now[1]);
          multiply_add<T>(c[i][2 * block + 1], a[i], now[2], now[3]);
        }
      }
    }
  }

  /// Rounds the warp's share of C to T and lays it into a [kRows, kColumns] tile in SMEM.
  __device__ void stage(std::uint32_t tile) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
    for (int i = 0; i < kM; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int n = 0; n < kWarpColumns / 8; ++n) {
          const std::uint32_t to =
              tile + tile_offset<Tile::kColumns>(row + 16 * i + 8 * half + lane / 4, column / 8 + n) + 4 * (lane % 4);
          asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(pack<T>(c[i][n][2 * half], c[i][n][2 * half + 1]))
                       : "memory");
        }
      }
    }
  }
  /// HBM write: the valid `rows` by `columns` elements of the staged tile, to rows `stride` elements apart: 16 bytes a
  /// thread, and two bytes where a row ends within them.
  template <class Counter>
  __device__ static void store(T* to, std::int64_t stride, int rows, int columns, std::uint32_t tile, Tensor tensor,
                               Counter& counter) {
    constexpr int kChunks = Tile::kColumns / 8;
#pragma unroll 4
    for (int n = static_cast<int>(threadIdx.x); n < Tile::kRows * kChunks; n += Tile::kThreads) {
      const int at_row = n / kChunks, chunk = n % kChunks, valid = columns - chunk * 8;
      if (at_row >= rows || valid <= 0) continue;
      const std::uint32_t from = tile + tile_offset<Tile::kColumns>(at_row, chunk);
      uint4 x;
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                   : "r"(from)
                   : "memory");
      store_chunk(to + at_row * stride + chunk * 8, x, valid);
      counter.wrote(tensor, 2 * min(valid, 8));
    }
  }
};

}  // namespace hbmscope::kernels
