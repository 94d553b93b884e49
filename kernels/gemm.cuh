#pragma once
#include "kernels/chunk.cuh"
#include "kernels/tile.cuh"

/// One tile of a matrix product on tensor cores: C[kRows, kColumns] = A[kRows, depth] B[depth, kColumns], 16-bit
/// operands, fp32 accumulators. The depth is cut into slices of 64; kStages slices of both operands lie in SMEM at
/// once, so that cp.async brings the next ones while one is multiplied. Each warp owns kM blocks of 16 rows by 64
/// columns of C.
namespace hbmscope::kernels {

template <int kR, int kC, int kW, int kS, int kCtas>
struct GemmTile {
  static constexpr int kRows = kR, kColumns = kC;
  static constexpr int kDepth = 64;         ///< of a slice: 128 bytes, all banks once
  static constexpr int kStages = kS;        ///< slices in SMEM
  static constexpr int kCtasPerSm = kCtas;  ///< that registers and SMEM have to leave room for
  static constexpr int kThreads = kW * kWarpSize;
  static constexpr int kWarpColumns = 64, kWarpsAcross = kC / kWarpColumns;
  static constexpr int kWarpRows = kR * kWarpsAcross / kW, kM = kWarpRows / 16;
  static constexpr std::uint32_t kSliceA = kR * kDepth * 2, kSliceB = kC * kDepth * 2;
  static constexpr std::size_t kSmem = kS * (kSliceA + kSliceB);
  static_assert(kC % kWarpColumns == 0 && kW % kWarpsAcross == 0 && kWarpRows % 16 == 0, "warps tile C");
  static_assert(kSmem >= kR * kC * 2, "C leaves through the room of the slices");
  using Accumulators = float[kM][kWarpColumns / 8][4];  ///< as multiply_add leaves them
};

/// The tile of the result that a CTA of a 1-D grid makes. CTAs are counted column fastest, then row, head and batch, so
/// those that run together share rows of A, and all of B's columns stay in L2.
struct TilePlace {
  int row, column, head, batch;
};
__device__ inline TilePlace tile_of_cta(const AttentionArgs& a, int row_tiles, int column_tiles) {
  const auto columns = static_cast<unsigned>(column_tiles), rows = static_cast<unsigned>(row_tiles);
  const unsigned row = blockIdx.x / columns, batch_head = row / rows, heads = static_cast<unsigned>(a.num_heads);
  return {static_cast<int>(row % rows), static_cast<int>(blockIdx.x % columns), static_cast<int>(batch_head % heads),
          static_cast<int>(batch_head / heads)};
}
__device__ inline int kv_head_of(const AttentionArgs& a, int head) {
  return head / (a.num_heads / a.num_kv_heads);
}

/// Where in its tile a warp's share of C begins.
struct WarpPlace {
  int row, column;
};
template <class Tile>
__device__ inline WarpPlace warp_place() {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  return {warp / Tile::kWarpsAcross * Tile::kWarpRows, warp % Tile::kWarpsAcross * Tile::kWarpColumns};
}

/// How operand B lies in SMEM: [columns, depth] as K does in Q K^T, or [depth, columns] as V does in P V.
enum class OperandB { by_column, by_depth };

/// Where a warp's first blocks of A and B lie in the first slice; those of the other slices are as many bytes further.
struct FirstBlocks {
  std::uint32_t a, b;
};
template <class Tile, OperandB kB>
__device__ inline FirstBlocks first_blocks(std::uint32_t smem, WarpPlace at) {
  const std::uint32_t b_slice = smem + Tile::kSliceA;
  return {block_address<Tile::kDepth>(smem, at.row, 0), kB == OperandB::by_column
                                                            ? block_address_b<Tile::kDepth>(b_slice, at.column, 0)
                                                            : block_address<Tile::kColumns>(b_slice, 0, at.column)};
}

/// c += A B over one slice. Each fragment of B is called for one step before it is multiplied.
template <class T, class Tile, OperandB kB>
__device__ inline void multiply_slice(typename Tile::Accumulators& c, FirstBlocks at) {
  constexpr int kSteps = Tile::kDepth / 16, kBlocks = Tile::kWarpColumns / 16;
  constexpr std::uint32_t kRows16 = 16 * Tile::kDepth * 2, kDepth16 = 16 * Tile::kColumns * 2;  // bytes
  std::uint32_t a[Tile::kM][4], b[2][4];
  const auto load_b = [&](int step, int block) {
    std::uint32_t(&to)[4] = b[(step * kBlocks + block) & 1];
    if constexpr (kB == OperandB::by_column) {
      load_matrices(to, to_the_right(at.b, 16 * step) + block * kRows16);
    } else {
      load_matrices_transposed(to, to_the_right(at.b, 16 * block) + step * kDepth16);
    }
  };
  load_b(0, 0);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < Tile::kM; ++i) load_matrices(a[i], to_the_right(at.a, 16 * step) + i * kRows16);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      if (block + 1 < kBlocks) {
        load_b(step, block + 1);
      } else if (step + 1 < kSteps) {
        load_b(step + 1, 0);
      }
      const std::uint32_t(&now)[4] = b[(step * kBlocks + block) & 1];
#pragma unroll
      for (int i = 0; i < Tile::kM; ++i) {
        multiply_add<T>(c[i][2 * block], a[i], now[0], now[1]);
        multiply_add<T>(c[i][2 * block + 1], a[i], now[2], now[3]);
      }
    }
  }
}

/// c += A B over all slices. `load(k, a_slice, b_slice)` starts the copies of slice k. Warps whose columns all lie
/// beyond `columns` only copy. Ends with all copies arrived, but with other warps still reading.
template <class T, class Tile, OperandB kB, class Load>
__device__ inline void multiply_slices(typename Tile::Accumulators& c, std::uint32_t smem, int slices, int columns,
                                       Load&& load) {
  constexpr int kStages = Tile::kStages;
  const auto a_slice = [=](int stage) { return smem + stage * (Tile::kSliceA + Tile::kSliceB); };
  const auto b_slice = [=](int stage) { return a_slice(stage) + Tile::kSliceA; };
  const WarpPlace at = warp_place<Tile>();
  const FirstBlocks first = first_blocks<Tile, kB>(smem, at);

#pragma unroll 1
  for (int k = 0; k < kStages; ++k) {
    if (k < slices) load(k, a_slice(k), b_slice(k));
    commit_copies();
  }
  int stage = 0;
#pragma unroll 1
  for (int k = 0; k < slices; ++k) {
    if (k == 0) {
      wait_copies<kStages - 1>();
    } else {
      wait_copies<kStages - 2>();
    }
    __syncthreads();  // slice k has come, and all warps are done with slice k - 1
    if (k > 0) {
      const int freed = stage == 0 ? kStages - 1 : stage - 1, next = k - 1 + kStages;
      if (next < slices) load(next, a_slice(freed), b_slice(freed));
      commit_copies();  // an empty group too, so that the count of groups stays that of slices
    }
    const std::uint32_t on = stage * (Tile::kSliceA + Tile::kSliceB);
    if (at.column < columns) multiply_slice<T, Tile, kB>(c, {first.a + on, first.b + on});
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
}

/// Rounds the warp's share of C to T and lays it into a [kRows, kColumns] tile.
template <class T, class Tile>
__device__ inline void stage_tile(const typename Tile::Accumulators& c, std::uint32_t tile) {
  const WarpPlace at = warp_place<Tile>();
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int i = 0; i < Tile::kM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = at.row + 16 * i + 8 * half + lane / 4;
#pragma unroll
      for (int n = 0; n < Tile::kWarpColumns / 8; ++n) {
        const std::uint32_t to = tile + tile_offset<Tile::kColumns>(row, at.column / 8 + n) + 4 * (lane % 4);
        const std::uint32_t pair = pack<T>(c[i][n][2 * half], c[i][n][2 * half + 1]);
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(pair) : "memory");
      }
    }
  }
}

/// HBM write: the valid `rows` by `columns` elements of a staged tile, 16 bytes a thread and two bytes where a row ends
/// within them. `stride` is a multiple of 8.
template <class T, class Tile, class Counter>
__device__ inline void store_tile(T* to, std::int64_t stride, int rows, int columns, std::uint32_t tile, Tensor tensor,
                                  Counter& counter) {
  static_assert(sizeof(T) == 2);
  constexpr int kChunks = Tile::kColumns / 8;
#pragma unroll 4
  for (int n = static_cast<int>(threadIdx.x); n < Tile::kRows * kChunks; n += Tile::kThreads) {
    const int row = n / kChunks, chunk = n % kChunks, valid = columns - chunk * 8;
    if (row >= rows || valid <= 0) continue;
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(tile + tile_offset<Tile::kColumns>(row, chunk))
                 : "memory");
    store_chunk(to + row * stride + chunk * 8, x, valid);
    counter.wrote(tensor, 2 * min(valid, 8));
  }
}

}  // namespace hbmscope::kernels
