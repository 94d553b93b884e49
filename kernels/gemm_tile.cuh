#pragma once
#include <type_traits>

#include "kernels/chunk.cuh"
#include "kernels/hopper.cuh"
#include "kernels/tile.cuh"

/// Tiles of naive's products: which is where, and how much one holds on chip.
namespace hbmscope::kernels {

template <int kR, int kC, int kW, int kS, int kCtas>
struct GemmTile {
  static constexpr int kRows = kR, kColumns = kC;
  static constexpr int kDepth = 64;         ///< of a slice: 128 bytes, all banks once
  static constexpr int kStages = kS;        ///< slices in SMEM
  static constexpr int kCtasPerSm = kCtas;  ///< that registers and SMEM have to leave room for
  static constexpr int kWarps = kW, kThreads = kW * kWarpSize;
  static constexpr std::uint32_t kSliceA = kR * kDepth * 2, kSliceB = kC * kDepth * 2;
  /// And so much more that the first slice can start on a multiple of kPanelAlignment.
  static constexpr std::size_t kSmem = kS * (kSliceA + kSliceB) + kPanelAlignment;
  static_assert(kS * (kSliceA + kSliceB) >= kR * kC * 2, "C leaves through the room of the slices");
};

/// Which tile of the result is the `number`th. They are counted column fastest, then row, panel of columns, head and
/// batch: those made at one time share rows of A, and B of the panel stays in L2. It is `panel` tiles wide.
struct TilePlace {
  int row, column, head, batch;
};
__device__ inline TilePlace tile_place(const AttentionArgs& a, unsigned number, int row_tiles, int column_tiles,
                                       int panel) {
  const auto columns = static_cast<unsigned>(column_tiles), rows = static_cast<unsigned>(row_tiles);
  const unsigned tile = number % (rows * columns), batch_head = number / (rows * columns);
  const auto widest = static_cast<unsigned>(panel), heads = static_cast<unsigned>(a.num_heads);
  const unsigned first = tile / (rows * widest) * widest, width = min(widest, columns - first);
  const unsigned in_panel = tile - rows * first;
  return {static_cast<int>(in_panel / width), static_cast<int>(first + in_panel % width),
          static_cast<int>(batch_head % heads), static_cast<int>(batch_head / heads)};
}
/// The same of tiles of S, by panels of K (model/tile_plan.hpp).
template <int kElementBytes>
__device__ inline TilePlace score_tile(const AttentionArgs& a, unsigned number, int rows, int columns) {
  const int row_tiles = static_cast<int>(ceil_div(a.seqlen_q, rows));
  const int column_tiles = static_cast<int>(ceil_div(a.seqlen_kv, columns));
  const std::int64_t panel = kPanelBytes / (std::int64_t{columns} * a.head_dim * kElementBytes);
  return tile_place(a, number, row_tiles, column_tiles,
                    static_cast<int>(panel < 1 ? 1 : panel > column_tiles ? column_tiles : panel));
}
/// And of tiles of O.
__device__ inline TilePlace output_tile(const AttentionArgs& a, unsigned number, int rows, int columns) {
  const int column_tiles = static_cast<int>(ceil_div(a.head_dim_v, columns));
  return tile_place(a, number, static_cast<int>(ceil_div(a.seqlen_q, rows)), column_tiles, column_tiles);
}
__device__ inline int kv_head_of(const AttentionArgs& a, int head) {
  return head / (a.num_heads / a.num_kv_heads);
}

/// HBM read: a slice of A, [kRows, kDepth].
template <class Tile, Reuse kReuse, class T, class Counter>
__device__ inline void load_operand_a(std::uint32_t slice, const T* from, std::int64_t stride, int rows, int depth,
                                      Tensor tensor, Counter& counter) {
  load_slice<Tile::kRows, Tile::kDepth, Tile::kThreads, kReuse>(slice, from, stride, rows, depth, tensor, counter);
}

}  // namespace hbmscope::kernels
