#pragma once
#include "kernels/common.cuh"

/// 16 bytes of a row: the unit of every access to global memory, 8 elements of 16 bits or 4 of 32.
namespace hbmscope::kernels {

template <class T>
constexpr int kChunkElements = 16 / static_cast<int>(sizeof(T));

/// The first `valid` elements (all, if there are more) of the chunk at `from`; zeros after them.
template <class T>
__device__ inline uint4 load_chunk(const T* from, int valid) {
  if (valid >= kChunkElements<T>) return *reinterpret_cast<const uint4*>(from);
  std::uint32_t word[4] = {};
  if constexpr (sizeof(T) == 2) {
    const auto* halves = reinterpret_cast<const unsigned short*>(from);
#pragma unroll
    for (int i = 0; i < 7; ++i) {
      if (i < valid) word[i / 2] |= static_cast<std::uint32_t>(halves[i]) << (16 * (i % 2));
    }
  } else {
    const auto* words = reinterpret_cast<const std::uint32_t*>(from);
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (i < valid) word[i] = words[i];
    }
  }
  return make_uint4(word[0], word[1], word[2], word[3]);
}

/// Writes the first `valid` elements of a chunk and leaves what follows them alone.
template <class T>
__device__ inline void store_chunk(T* to, uint4 x, int valid) {
  if (valid >= kChunkElements<T>) {
    *reinterpret_cast<uint4*>(to) = x;
    return;
  }
  const std::uint32_t word[4] = {x.x, x.y, x.z, x.w};
  if constexpr (sizeof(T) == 2) {
    auto* halves = reinterpret_cast<unsigned short*>(to);
#pragma unroll
    for (int i = 0; i < 7; ++i) {
      if (i < valid) halves[i] = static_cast<unsigned short>(word[i / 2] >> (16 * (i % 2)));
    }
  } else {
    auto* words = reinterpret_cast<std::uint32_t*>(to);
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (i < valid) words[i] = word[i];
    }
  }
}

/// A chunk as fp32 numbers.
template <class T>
__device__ inline void unpack_chunk(float (&x)[kChunkElements<T>], uint4 chunk) {
  const std::uint32_t word[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      x[i] = __uint_as_float(word[i]);
    } else if constexpr (std::is_same_v<T, BFloat16>) {  // the upper half of a binary32
      x[2 * i] = __uint_as_float(word[i] << 16);
      x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
    } else {
      const float2 pair = __half22float2(reinterpret_cast<const __half2&>(word[i]));
      x[2 * i] = pair.x;
      x[2 * i + 1] = pair.y;
    }
  }
}

/// Rounded to nearest even.
template <class T>
__device__ inline uint4 pack_chunk(const float (&x)[kChunkElements<T>]) {
  if constexpr (std::is_same_v<T, float>) {
    return make_uint4(__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]), __float_as_uint(x[3]));
  } else {
    return make_uint4(pack<T>(x[0], x[1]), pack<T>(x[2], x[3]), pack<T>(x[4], x[5]), pack<T>(x[6], x[7]));
  }
}

}  // namespace hbmscope::kernels
