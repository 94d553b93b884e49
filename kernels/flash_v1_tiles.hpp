#pragma once
#include <algorithm>

#include "kernels/attention.hpp"

/// The tiles that flash_v1 is compiled for, by dtype and head_dim.
namespace hbmscope::kernels {

template <int kD, int kBq, int kBkv, int kBytes, int kBuffers>
struct FlashV1Tile {
  static constexpr int kHeadDim = kD;           ///< head_dim and head_dim_v, padded to
  static constexpr int kBlockQ = kBq;           ///< query rows of a visit
  static constexpr int kBlockKv = kBkv;         ///< keys of a pass
  static constexpr int kElementBytes = kBytes;  ///< of Q, K, V and O
  static constexpr int kQBuffers = kBuffers;    ///< Q tiles in SMEM; with two, the next one comes during a visit
  static constexpr int kWarps = 4;              ///< each owns a quarter of the query rows, in every visit the same
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kWarpRows = kBq / kWarps;
  static constexpr int kSmemBytes = (kBuffers * kBq + 2 * kBkv) * kD * kBytes;
  static_assert(kBq % (4 * kWarps) == 0, "a warp's rows are shared by its four quarters (fp32) or fill 16-row blocks");
  static_assert(kBkv % 16 == 0, "P feeds the tensor cores 16 keys at a time");
  static_assert(kBkv <= kD, "P of a warp's rows goes where their Q was (fp32)");
  static_assert(kSmemBytes <= 99 * 1024, "the SMEM that a CTA may have on sm_86 and sm_89");
};

template <class F>
void with_flash_v1_tile(Dtype dtype, std::int64_t head_dim, std::int64_t head_dim_v, F&& f) {
  const std::int64_t width = std::max(head_dim, head_dim_v);
  if (dtype == Dtype::fp32) {
    if (width <= 64) return f(FlashV1Tile<64, 64, 64, 4, 1>{});
    if (width <= 128) return f(FlashV1Tile<128, 64, 64, 4, 1>{});
    return f(FlashV1Tile<256, 32, 32, 4, 1>{});
  }
  if (width <= 64) return f(FlashV1Tile<64, 64, 64, 2, 2>{});
  if (width <= 128) return f(FlashV1Tile<128, 64, 64, 2, 2>{});
  return f(FlashV1Tile<256, 64, 64, 2, 1>{});
}

}  // namespace hbmscope::kernels
