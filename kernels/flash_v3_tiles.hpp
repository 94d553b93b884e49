#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

/// The tiles that flash_v3 is compiled for, by head_dim.
namespace hbmscope::kernels {

template <int kD, int kWg, int kBkv, bool kQr, bool kOv>
struct FlashV3Tile {
  static constexpr int kHeadDim = kD;         ///< head_dim and head_dim_v, padded to
  static constexpr int kWarpgroups = kWg;     ///< that compute, 64 query rows each
  static constexpr int kBlockQ = 64 * kWg;    ///< query rows of a CTA
  static constexpr int kBlockKv = kBkv;       ///< keys of a step
  static constexpr bool kQInRegisters = kQr;  ///< else the tensor cores read Q from SMEM anew for each tile of keys
  /// Exponentials before the wait for P V and not after it. A product with P in registers holds the warp that starts it
  /// until its last step has begun, so there is little to overlap with; where steps are short, that little counts.
  static constexpr bool kOverlap = kOv;
  static constexpr int kStages = 2;  ///< tiles of K, and of V, in SMEM
  static constexpr int kThreads = 128 + 128 * kWg;
  /// Registers a thread, once the warpgroup that copies has given back what it does not need. Together they are what
  /// the CTA begins with: 504 for two warpgroups and three times 168, 512 for three and four times 128.
  static constexpr int kCopyRegisters = kWg == 2 ? 24 : 32, kComputeRegisters = kWg == 2 ? 240 : 160;
  static constexpr std::uint32_t kTileQ = kBlockQ * kD * 2, kTileKv = kBkv * kD * 2;  ///< bytes
  static constexpr std::size_t kTileBytes = kTileQ + 2 * kStages * kTileKv;
  /// And the barriers, and so much that the first tile can start on a multiple of 1024.
  static constexpr std::size_t kSmem = kTileBytes + 128 + 1024;
  static_assert(kWg == 2 || kWg == 3, "one warpgroup copies, two or three compute");
  static_assert(kD % 64 == 0 && kBkv % 16 == 0, "panels are 64 wide, P feeds the tensor cores 16 keys at a time");
  static_assert(kSmem <= 232448, "SMEM of a CTA on Hopper");
};

/// The same with Q left in SMEM. The rungs take it: where Q and P are never operands at one time, ptxas of CUDA 13.0
/// gives P the registers of Q, though the next tile of keys needs Q again.
template <class Tile>
struct QFromSmem : Tile {
  static constexpr bool kQInRegisters = false;
};

using FlashV3Tile64 = FlashV3Tile<64, 3, 128, false, true>;
using FlashV3Tile128 = FlashV3Tile<128, 2, 128, true, false>;
using FlashV3Tile256 = FlashV3Tile<256, 2, 80, false, false>;

template <class F>
void with_flash_v3_tile(std::int64_t head_dim, std::int64_t head_dim_v, F&& f) {
  const std::int64_t width = std::max(head_dim, head_dim_v);
  if (width <= 64) return f(FlashV3Tile64{});
  if (width <= 128) return f(FlashV3Tile128{});
  return f(FlashV3Tile256{});
}

}  // namespace hbmscope::kernels
