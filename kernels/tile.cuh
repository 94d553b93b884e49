#pragma once
#include "kernels/common.cuh"

/// Tiles of 16-bit elements in SMEM: rows of kWidth elements in chunks of 8 (16 bytes). Chunk c of row r lies at place
/// c ^ (r % 8), so the eight rows that one ldmatrix reads, and the eight chunks that a copy writes, fall into different
/// banks.
namespace hbmscope::kernels {

template <int kWidth>
__device__ inline std::uint32_t tile_offset(int row, int chunk) {  // in bytes
  static_assert(kWidth % 64 == 0, "the swizzle moves chunks within groups of eight");
  return static_cast<std::uint32_t>(row * kWidth * 2 + ((chunk ^ (row & 7)) << 4));
}

/// HBM read: `rows` (of kRows) rows of `width` (of kWidth) elements, `stride` elements apart; the rest of the tile is
/// filled with zeros. `width` and `stride` are multiples of 8.
template <int kRows, int kWidth, int kThreads, class T, class Counter>
__device__ inline void load_tile(std::uint32_t tile, const T* from, std::int64_t stride, int rows, int width,
                                 Tensor tensor, Counter& counter) {
  static_assert(sizeof(T) == 2);
  constexpr int kChunks = kWidth / 8;
  static_assert(kRows * kChunks % kThreads == 0 || kRows * kChunks < kThreads, "each thread copies as many chunks");
#pragma unroll
  for (int i = 0; i < (kRows * kChunks + kThreads - 1) / kThreads; ++i) {
    const int n = i * kThreads + static_cast<int>(threadIdx.x);
    if (kRows * kChunks < kThreads && n >= kRows * kChunks) break;
    const int row = n / kChunks, chunk = n % kChunks;
    const int bytes = row < rows && chunk * 8 < width ? 16 : 0;
    copy_async_16(tile + tile_offset<kWidth>(row, chunk), bytes != 0 ? from + row * stride + chunk * 8 : from, bytes);
    counter.read(tensor, bytes);
  }
}

/// HBM read: as load_tile, for tiles whose rows divide evenly among the threads. Each thread keeps to one chunk of
/// every kStep-th row, so that a copy costs one addition and, where kStep is not a multiple of 8, a step of the
/// swizzle.
template <int kRows, int kWidth, int kThreads, Reuse kReuse = Reuse::soon, class T, class Counter>
__device__ inline void load_slice(std::uint32_t slice, const T* from, std::int64_t stride, int rows, int width,
                                  Tensor tensor, Counter& counter) {
  static_assert(sizeof(T) == 2);
  constexpr int kChunks = kWidth / 8, kStep = kThreads / kChunks;
  static_assert(kThreads % kChunks == 0 && (kStep % 8 == 0 || 8 % kStep == 0) && kRows % kStep == 0);
  const int thread = thread_now();  // what follows from it takes no registers between one tile and the next
  const int row = thread / kChunks, chunk = thread % kChunks;
  const int valid = max(0, min(16, 2 * (width - chunk * 8)));  // bytes of this chunk within the row
  const std::uint32_t to = slice + tile_offset<kWidth>(row, chunk);
  const T* at = from + row * stride + chunk * 8;
#pragma unroll
  for (int i = 0; i < kRows / kStep; ++i) {
    const int bytes = row + i * kStep < rows ? valid : 0;
    const std::uint32_t swizzle = (i * kStep % 8) << 4;  // row has none of these bits
    // No byte, no access: `at` may lie beyond.
    copy_async_16<kReuse>((to ^ swizzle) + i * (kStep * kWidth * 2), at, bytes);
    counter.read(tensor, bytes);
    at += kStep * stride;
  }
}

/// Address for ldmatrix of the 16 x 16 block at (row, column) as operand A (rows of the product) of multiply_add:
/// r[0..3] are its fragments a0 to a3. Transposed, the same address gives operand B of a [kv, d] tile: r[0], r[1] for
/// the first eight columns, r[2], r[3] for the next.
template <int kWidth>
__device__ inline std::uint32_t block_address(std::uint32_t tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  return tile + tile_offset<kWidth>(row + lane % 16, column / 8 + lane / 16);
}
/// As operand B where the tile's rows are the columns of the product (K in Q K^T): r[0], r[1] belong to rows
/// row..row+7, r[2], r[3] to the next eight.
template <int kWidth>
__device__ inline std::uint32_t block_address_b(std::uint32_t tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  return tile + tile_offset<kWidth>(row + lane % 8 + lane / 16 * 8, column / 8 + lane / 8 % 2);
}

/// Where the block `columns` further right lies, given the address of one in the tile's first column. The swizzle is an
/// exclusive or, so a step to the right is one too; a step of 8 rows down is an addition, which an instruction does for
/// free. One register a tile instead of one a block.
__device__ inline std::uint32_t to_the_right(std::uint32_t address, int columns) {
  return address ^ static_cast<std::uint32_t>(2 * columns);
}
/// Keeps the compiler from holding everything that follows from `address` in registers of its own across a loop.
__device__ inline void forget(std::uint32_t& address) {
  asm volatile("" : "+r"(address));
}
__device__ inline void forget(std::int64_t& offset) {
  asm volatile("" : "+l"(offset));
}

}  // namespace hbmscope::kernels
