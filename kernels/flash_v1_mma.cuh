#pragma once
#include "kernels/flash_v1.cuh"

/// What a warp of the tensor-core kernel of flash_v1 does beyond softmax.cuh: its 16 rows of O come and go with every
/// visit, and P is kept so that O can be made a few columns at a time.
namespace hbmscope::kernels {

template <class T>
__device__ inline float2 unpack(std::uint32_t pair);
template <>
__device__ inline float2 unpack<Half>(std::uint32_t pair) {
  return __half22float2(reinterpret_cast<const __half2&>(pair));
}
template <>
__device__ inline float2 unpack<BFloat16>(std::uint32_t pair) {
  return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(pair));
}

/// The warp's 16 rows of O in the dtype. They pass through the warp's own rows of the Q tile in SMEM, so that HBM sees
/// 16 bytes a lane: chunk n of them is lane n % 32's, on the way in and on the way out.
template <int kD>
struct WarpRows {
  std::uint32_t tile;
  int warp_row, rows, width;  ///< rows of the query tile, columns of O

  template <class F>
  __device__ void each_chunk(F&& f) const {
#pragma unroll
    for (int i = 0; i < kD / 16; ++i) {
      const int n = i * kWarpSize + static_cast<int>(threadIdx.x) % kWarpSize;
      const int row = warp_row + n / (kD / 8), chunk = n % (kD / 8);
      f(i, tile + tile_offset<kD>(row, chunk), row * width + chunk * 8, row < rows && chunk * 8 < width);
    }
  }
  /// To registers, while Q is still in SMEM ...
  template <class T, class Counter>
  __device__ void read(uint4 (&chunks)[kD / 16], const T* o, Counter& counter) const {
    each_chunk([&](int i, std::uint32_t, int element, bool inside) {
      chunks[i] = {};
      if (!inside) return;
      chunks[i] = read_back(reinterpret_cast<const uint4*>(o + element));
      counter.read(Tensor::O, 16);
    });
  }
  /// ... then there,
  __device__ void put(const uint4 (&chunks)[kD / 16]) const {
    each_chunk([&](int i, std::uint32_t at, int, bool) {
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(chunks[i].x), "r"(chunks[i].y),
                   "r"(chunks[i].z), "r"(chunks[i].w)
                   : "memory");
    });
  }
  /// and from there back.
  template <class T, class Counter>
  __device__ void write(T* o, Counter& counter) const {
    each_chunk([&](int, std::uint32_t at, int element, bool inside) {
      if (!inside) return;
      uint4 x;
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                   : "r"(at)
                   : "memory");
      *reinterpret_cast<uint4*>(o + element) = x;
      counter.wrote(Tensor::O, 16);
    });
  }
  /// This lane's two elements of 8-column block n, in row l/4 or l/4 + 8.
  __device__ std::uint32_t pair(int n, int half) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    return tile + tile_offset<kD>(warp_row + 8 * half + lane / 4, n) + 4 * (lane % 4);
  }
};

__device__ inline std::uint32_t load_pair(std::uint32_t at) {
  std::uint32_t pair;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(pair) : "r"(at) : "memory");
  return pair;
}
__device__ inline void store_pair(std::uint32_t at, std::uint32_t pair) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(pair) : "memory");
}

/// o += P V for kColumns columns of V from `first` on.
template <class T, int kBkv, int kD, int kColumns>
__device__ inline void multiply_columns(float (&o)[kColumns / 8][4], const std::uint32_t (&p)[kBkv / 16][4],
                                        std::uint32_t v_tile, int first, int dv) {
#pragma unroll
  for (int c = 0; c < kBkv; c += 16) {
#pragma unroll
    for (int x = 0; x < kColumns; x += 16) {
      if (first + x >= dv) break;
      std::uint32_t v[4];
      load_matrices_transposed(v, block_address<kD>(v_tile, c, first + x));
      multiply_add<T>(o[x / 8], p[c / 16], v[0], v[1]);
      multiply_add<T>(o[x / 8 + 1], p[c / 16], v[2], v[3]);
    }
  }
}

}  // namespace hbmscope::kernels
