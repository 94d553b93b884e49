#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "model/tile_plan.hpp"

/// The tiles and schedules that flash_v3 is compiled for, by head_dim.
namespace hbmscope::kernels {

/// Which products the warpgroups of a CTA start one after the other.
enum class InTurn {
  nothing,
  first_scores,  ///< Q K^T of a query tile's first keys, each when the one before is done
  products       ///< those of every step, each when the one before has started (flash_v3c)
};

/// What can be chosen about flash_v3 on one head_dim. `hbmscope gpu tiles` times such choices against each other.
struct FlashV3Choice {
  int warpgroups;         ///< that compute, 64 query rows each
  int block_kv;           ///< keys of a step
  bool q_in_registers{};  ///< else the tensor cores read Q from SMEM anew for each tile of keys
  InTurn in_turn{};
  bool stays{true};       ///< as many CTAs as SMs, which draw query tiles; else one CTA for each
  int cluster{1};         ///< CTAs of neighbouring query tiles that receive each tile of K and V from one multicast
  int stages{2};          ///< tiles of K, and of V, in SMEM
};

template <int kD, FlashV3Choice kC, int kE = 2>
struct FlashV3Tile {
  static constexpr int kElementBytes = kE;
  static constexpr int kHeadDim = kD;  ///< head_dim and head_dim_v, padded to
  static constexpr int kWarpgroups = kC.warpgroups;
  static constexpr int kBlockQ = 64 * kC.warpgroups;  ///< query rows of a CTA
  static constexpr int kBlockKv = kC.block_kv;
  static constexpr bool kQInRegisters = kC.q_in_registers, kStays = kC.stays;
  static constexpr InTurn kInTurn = kC.in_turn;
  static constexpr int kCluster = kC.cluster, kStages = kC.stages;
  static constexpr int kThreads = 128 + 128 * kC.warpgroups;
  /// Registers a thread, once the warpgroup that copies has given back what it does not need. Together they are no more
  /// than what the CTA begins with: 504 for two warpgroups and three times 168, 512 for three and four times 128.
  static constexpr int kCopyRegisters = kWarpgroups == 2 ? 24 : 32, kComputeRegisters = kWarpgroups == 2 ? 240 : 160;
  static constexpr std::uint32_t kTileQ = kBlockQ * kD * kE, kTileKv = kBlockKv * kD * kE;  ///< bytes
  static constexpr std::size_t kTileBytes = kTileQ + 2 * kStages * kTileKv;
  static constexpr std::size_t kBarrierBytes = 448;  ///< and words behind the barriers
  static constexpr int kValueReaders = 4 * kWarpgroups;  ///< warps that have to be done with a tile of V
  /// Warps that read which query tile is next, beside those that compute.
  static constexpr int kOtherReaders = 0;
  /// And so much that the first tile can start on a multiple of 1024.
  static constexpr std::size_t kSmem = kTileBytes + kBarrierBytes + 1024;
  static_assert(kWarpgroups == 2 || kWarpgroups == 3, "one warpgroup copies, two or three compute");
  static_assert(kD * kE % 128 == 0 && kBlockKv * kE % 32 == 0, "panels and the tensor cores' steps, in bytes");
  static_assert(kBlockKv % (8 * kCluster) == 0, "each CTA of a cluster copies its part of a tile, whole swizzles of it");
  static_assert(kSmem <= 232448, "SMEM of a CTA on Hopper");
};

/// The same with Q left in SMEM. The rungs take it: where Q and P are never operands at one time, ptxas of CUDA 13.0
/// gives P the registers of Q, though the next tile of keys needs Q again.
template <class Tile>
struct QFromSmem : Tile {
  static constexpr bool kQInRegisters = false;
};

/// fp8. The tensor cores take V by columns only: three warps beside the one that copies turn each tile of it round,
/// into panels of 128 keys.
template <int kD, FlashV3Choice kC, int kTurned = 2>
struct FlashV3Fp8Tile : FlashV3Tile<kD, kC, 1> {
  using Base = FlashV3Tile<kD, kC, 1>;
  static constexpr int kCopyRegisters = 40;
  static constexpr int kComputeRegisters = kC.warpgroups == 2 ? 232 : 152;
  static constexpr int kTurners = 3, kValueReaders = kTurners, kOtherReaders = kTurners;
  static constexpr int kChunksTurned = 4;  ///< of 16 columns, that a warp turns round at once
  static constexpr int kStagesTurned = kTurned;  ///< tiles of V turned round, in SMEM
  static constexpr int kPanelsTurned = (kC.block_kv + 127) / 128;
  static constexpr std::uint32_t kTileTurned = kPanelsTurned * kD * 128;  ///< bytes
  static constexpr std::size_t kTileBytes = Base::kTileBytes + kTurned * kTileTurned;
  static constexpr std::size_t kSmem = Base::kSmem + kTurned * kTileTurned;
  static_assert(kC.cluster == 1 && kC.block_kv % 32 == 0 && kSmem <= 232448);
};

using FlashV3Tile64 = FlashV3Tile<64, FlashV3Choice{.warpgroups = 3, .block_kv = 128}>;
using FlashV3Tile64Short = FlashV3Tile<64, FlashV3Choice{.warpgroups = 2, .block_kv = 128, .q_in_registers = true}>;
using FlashV3Tile128 = FlashV3Tile<128, FlashV3Choice{.warpgroups = 2, .block_kv = 128, .q_in_registers = true, .in_turn = InTurn::first_scores}>;
using FlashV3Tile128Long = FlashV3Tile<128, FlashV3Choice{.warpgroups = 2, .block_kv = 176, .in_turn = InTurn::first_scores}>;
using FlashV3Tile128Pair = FlashV3Tile<128, FlashV3Choice{.warpgroups = 2, .block_kv = 176, .in_turn = InTurn::first_scores, .cluster = 2}>;
using FlashV3Tile256 = FlashV3Tile<256, FlashV3Choice{.warpgroups = 2, .block_kv = 80}>;
using FlashV3Tile256Pair = FlashV3Tile<256, FlashV3Choice{.warpgroups = 2, .block_kv = 80, .cluster = 2}>;

using FlashV3Fp8Tile128 = FlashV3Fp8Tile<128, FlashV3Choice{.warpgroups = 3, .block_kv = 96, .in_turn = InTurn::first_scores, .stages = 4}, 3>;
using FlashV3Fp8Tile256 = FlashV3Fp8Tile<256, FlashV3Choice{.warpgroups = 2, .block_kv = 96, .in_turn = InTurn::first_scores}, 2>;

/// Calls f with the fp8 tile of a head_dim.
template <class F>
void with_flash_v3_fp8_tile(std::int64_t head_dim, std::int64_t head_dim_v, F&& f) {
  std::max(head_dim, head_dim_v) <= 128 ? f(FlashV3Fp8Tile128{}) : f(FlashV3Fp8Tile256{});
}
/// Calls f with the tile of a head_dim.
template <class F>
void with_flash_v3_tile(std::int64_t head_dim, std::int64_t head_dim_v, F&& f) {
  const std::int64_t width = std::max(head_dim, head_dim_v);
  if (width <= 64) return f(FlashV3Tile64{});
  if (width <= 128) return f(FlashV3Tile128{});
  return f(FlashV3Tile256{});
}
/// Where a head_dim has two tiles, with that of the plan's query rows, keys and cluster, or else the one above.
template <class F>
void with_flash_v3_tile(std::int64_t head_dim, std::int64_t head_dim_v, const TilePlan& plan, F&& f) {
  const std::int64_t width = std::max(head_dim, head_dim_v);
  if (width <= 64 && plan.block_q == FlashV3Tile64Short::kBlockQ) return f(FlashV3Tile64Short{});
  if (width > 64 && width <= 128 && plan.block_kv == FlashV3Tile128Long::kBlockKv) {
    return plan.cluster == FlashV3Tile128Pair::kCluster ? f(FlashV3Tile128Pair{}) : f(FlashV3Tile128Long{});
  }
  if (width > 128 && plan.cluster == FlashV3Tile256Pair::kCluster) return f(FlashV3Tile256Pair{});
  with_flash_v3_tile(head_dim, head_dim_v, f);
}

}  // namespace hbmscope::kernels
