#pragma once
#include <algorithm>

#include "kernels/attention.hpp"

/// The tiles that flash_v2 is compiled for, by head_dim.
namespace hbmscope::kernels {

template <int kD, int kBq, int kBkv, int kW, int kCtas, int kS = 2>
struct FlashTile {
  static constexpr int kHeadDim = kD;       ///< head_dim and head_dim_v, padded to
  static constexpr int kBlockQ = kBq;       ///< query rows of a CTA
  static constexpr int kBlockKv = kBkv;     ///< keys of a step
  static constexpr int kWarps = kW;         ///< they share the query rows among them
  static constexpr int kCtasPerSm = kCtas;  ///< that registers and SMEM have to leave room for
  static constexpr int kStages = kS;        ///< tiles of K, and of V, in SMEM
  static constexpr int kThreads = kW * 32;
  static_assert(kBq % (16 * kW) == 0, "each warp owns whole 16-row blocks of the query tile");
  static_assert(kBkv % 16 == 0, "P feeds the tensor cores 16 keys at a time");
};

/// A warp of 32 rows reads each K and V fragment from SMEM once for two 16-row blocks; at 256 wide only one block's
/// accumulators fit its registers. There two CTAs of four warps hide more than one of eight: while one waits at a
/// barrier, or has no next tile yet, the other computes.
using FlashTile64 = FlashTile<64, 128, 128, 4, 2>;
using FlashTile128 = FlashTile<128, 128, 64, 4, 2>;
using FlashTile256 = FlashTile<256, 64, 64, 4, 2, 1>;

template <class F>
void with_flash_tile(std::int64_t head_dim, std::int64_t head_dim_v, F&& f) {
  const std::int64_t width = std::max(head_dim, head_dim_v);
  if (width <= 64) return f(FlashTile64{});
  if (width <= 128) return f(FlashTile128{});
  return f(FlashTile256{});
}

}  // namespace hbmscope::kernels
