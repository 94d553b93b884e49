#pragma once
#include "kernels/flash_v1_tiles.hpp"
#include "kernels/softmax.cuh"
#include "kernels/tile.cuh"

/// What the tensor-core and the fp32 kernel of flash_v1 share. A warp owns the same rows of every query tile, and a
/// lane the same elements of O, l and m in every visit: it reads back only what it wrote itself, in program order, so
/// no barrier has to stand between two visits.
namespace hbmscope::kernels {

void launch_flash_v1_fp32(const Call& call);

/// Query tiles that see a key of [c_first, c_last]: those whose rows meet [c_first - band_high, c_last - band_low].
struct TileRange {
  int first, last;  ///< empty where first > last
};
template <int kBlockQ>
__device__ inline TileRange tiles_that_see(const AttentionArgs& a, int c_first, int c_last) {
  const std::int64_t first = max(std::int64_t{0}, std::int64_t{c_first} - a.band_high);
  const std::int64_t last = min(std::int64_t{a.seqlen_q} - 1, std::int64_t{c_last} - a.band_low);
  if (first > last) return {0, -1};
  return {static_cast<int>(first / kBlockQ), static_cast<int>(last / kBlockQ)};
}

// ---- what lies in HBM between two visits
// -----------------------------------------------------------------------------

/// Reads what an earlier visit wrote from L2, where Algorithm 1 has its slow memory: a small O would stay in L1.
__device__ inline float read_back(const float* from) {
  float x;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(x) : "l"(from) : "memory");
  return x;
}
__device__ inline float2 read_back(const float2* from) {
  float2 x;
  asm volatile("ld.global.cg.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "l"(from) : "memory");
  return x;
}
__device__ inline float4 read_back(const float4* from) {
  float4 x;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "l"(from)
               : "memory");
  return x;
}
__device__ inline uint4 read_back(const uint4* from) {
  uint4 x;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from)
               : "memory");
  return x;
}

/// A row's maximum of the scaled scores, and its sum of exp(score - m).
struct RowStatistics {
  float m = kMinusInfinity, l = 0;
};

/// The released kernels keep one number: a sum of 1 about m = LSE is the same row.
template <FlashV1Variant kVariant, class Counter>
__device__ inline RowStatistics read_statistics(const AttentionArgs& a, std::int64_t row, Counter& counter) {
  if constexpr (kVariant == FlashV1Variant::paper) {
    counter.read(Tensor::m, 4);
    counter.read(Tensor::l, 4);
    return {read_back(a.get<const float>(Tensor::m) + row), read_back(a.get<const float>(Tensor::l) + row)};
  } else {
    counter.read(Tensor::LSE, 4);
    const float lse = read_back(a.get<const float>(Tensor::LSE) + row);
    return {lse, lse == kMinusInfinity ? 0.0f : 1.0f};
  }
}
template <FlashV1Variant kVariant, class Counter>
__device__ inline void write_statistics(const AttentionArgs& a, std::int64_t row, RowStatistics x, Counter& counter) {
  if constexpr (kVariant == FlashV1Variant::paper) {
    a.get<float>(Tensor::m)[row] = x.m;
    a.get<float>(Tensor::l)[row] = x.l;
    counter.wrote(Tensor::m, 4);
    counter.wrote(Tensor::l, 4);
  } else {
    a.get<float>(Tensor::LSE)[row] = x.l == 0 ? kMinusInfinity : x.m + logf(x.l);
    counter.wrote(Tensor::LSE, 4);
  }
}

/// Algorithm 1, lines 11 and 12: what a visit makes of a row, O = keep O + add (P V). A row that sees none of the keys
/// keeps everything as it was (keep is exactly 1), one that has seen no key at all keeps O = 0.
struct Merged {
  RowStatistics now;
  float keep = 0, add = 0;
};
__device__ inline Merged merge(const RowStatistics& before, const RowStatistics& tile) {
  Merged x;
  x.now.m = fmaxf(before.m, tile.m);
  const float shift = x.now.m == kMinusInfinity ? 0.0f : x.now.m;
  const float old_weight = before.l * expf(before.m - shift), new_weight = expf(tile.m - shift);
  x.now.l = old_weight + new_weight * tile.l;
  if (x.now.l != 0) x.keep = old_weight / x.now.l, x.add = new_weight / x.now.l;
  return x;
}

// ---- a warp's rows of a tile
// -----------------------------------------------------------------------------------------

/// HBM read: the kWarpRows rows from `warp_row` on of a tile in SMEM, by the warp that owns them; rows from `rows` and
/// columns from `width` on are filled with zeros. Widths are in 16-bit elements.
template <int kWarpRows, int kWidth, class Counter>
__device__ inline void load_warp_rows(std::uint32_t tile, int warp_row, const void* from, int rows, int width,
                                      Tensor tensor, Counter& counter) {
  constexpr int kChunks = kWidth / 8;
  const auto* source = static_cast<const unsigned char*>(from);
#pragma unroll
  for (int i = 0; i < kWarpRows * kChunks / kWarpSize; ++i) {
    const int n = i * kWarpSize + static_cast<int>(threadIdx.x) % kWarpSize;
    const int row = warp_row + n / kChunks, chunk = n % kChunks;
    const bool inside = row < rows && chunk * 8 < width;
    copy_async_16(tile + tile_offset<kWidth>(row, chunk), inside ? source + 2 * (row * width + chunk * 8) : source,
                  inside ? 16 : 0);
    if (inside) counter.read(tensor, 16);
  }
}

}  // namespace hbmscope::kernels
