// Idea:    copy, read and fill: nothing but bytes, to hold counters and bandwidths against
// Reads:   copy and read: every byte once
// Writes:  copy and fill: every byte once
// On chip: four 16-byte chunks a thread, under way at once
// Costs:   none
#include <algorithm>
#include <cstring>

#include "kernels/common.cuh"
#include "kernels/yardsticks.hpp"

namespace hbmscope::kernels {
namespace {

constexpr int kThreads = 512, kAhead = 4;
constexpr std::int64_t kTile = kThreads * kAhead;  // chunks of 16 bytes that a CTA takes at a time
constexpr Tensor kFirst = static_cast<Tensor>(0);  // its counters are the first two: read, written

/// Calls whole(n) for each whole tile of a CTA's share: the thread has chunks n, n + kThreads, ..., kAhead of them.
/// Calls part(n) for each of its chunks of a last tile that is not whole.
template <class Whole, class Part>
__device__ inline void each_tile(std::int64_t chunks, Whole&& whole, Part&& part) {
  for (std::int64_t tile = blockIdx.x * kTile; tile < chunks; tile += gridDim.x * kTile) {
    const std::int64_t n = tile + threadIdx.x;
    if (tile + kTile <= chunks) {
      whole(n);
    } else {
      for (int i = 0; i < kAhead && n + i * kThreads < chunks; ++i) part(n + i * kThreads);
    }
  }
}
/// The last bytes, fewer than a chunk, are the first thread's.
template <class Work>
__device__ inline void each_leftover(std::int64_t bytes, Work&& work) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  for (std::int64_t i = bytes / 16 * 16; i < bytes; ++i) work(i);
}

template <bool kCounted>
__global__ void __launch_bounds__(kThreads)
    copy_kernel(unsigned char* to, const unsigned char* from, std::int64_t bytes, unsigned long long* byte_counters) {
  ByteCounter<kCounted> counter;
  const std::int64_t chunks = bytes / 16;
  const auto* const source = reinterpret_cast<const uint4*>(from);
  auto* const target = reinterpret_cast<uint4*>(to);
  each_tile(
      chunks,
      [&](std::int64_t n) {
        uint4 x[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) x[i] = source[n + i * kThreads];  // HBM read
#pragma unroll
        for (int i = 0; i < kAhead; ++i) target[n + i * kThreads] = x[i];  // HBM write
        counter.read(kFirst, 16 * kAhead), counter.wrote(kFirst, 16 * kAhead);
      },
      [&](std::int64_t n) {
        target[n] = source[n];
        counter.read(kFirst, 16), counter.wrote(kFirst, 16);
      });
  each_leftover(bytes, [&](std::int64_t i) {
    to[i] = from[i];
    counter.read(kFirst, 1), counter.wrote(kFirst, 1);
  });
  counter.flush(byte_counters);
}

/// Sums over a CTA and adds the result to `total`.
__device__ inline void add_to(unsigned long long* total, unsigned long long sum) {
  __shared__ unsigned long long partial[kThreads / kWarpSize];
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % kWarpSize == 0) partial[threadIdx.x / kWarpSize] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kThreads / kWarpSize; ++warp) sum += partial[warp];
  atomicAdd(total, sum);
}
__device__ inline unsigned long long word_sum(uint4 x) {
  return (0ull + x.x + x.y) + (0ull + x.z + x.w);
}

template <bool kCounted>
__global__ void __launch_bounds__(kThreads) read_kernel(unsigned long long* checksum, const unsigned char* from,
                                                        std::int64_t bytes, unsigned long long* byte_counters) {
  ByteCounter<kCounted> counter;
  const std::int64_t chunks = bytes / 16;
  unsigned long long sum = 0;
  const auto* const source = reinterpret_cast<const uint4*>(from);
  each_tile(
      chunks,
      [&](std::int64_t n) {
        uint4 x[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) x[i] = source[n + i * kThreads];  // HBM read
#pragma unroll
        for (int i = 0; i < kAhead; ++i) sum += word_sum(x[i]);
        counter.read(kFirst, 16 * kAhead);
      },
      [&](std::int64_t n) {
        sum += word_sum(source[n]);
        counter.read(kFirst, 16);
      });
  each_leftover(bytes, [&](std::int64_t i) {
    sum += static_cast<unsigned long long>(from[i]) << (8 * (i % 4));
    counter.read(kFirst, 1);
  });
  add_to(checksum, sum);
  counter.flush(byte_counters);
}

template <bool kCounted>
__global__ void __launch_bounds__(kThreads)
    fill_kernel(unsigned char* to, std::int64_t bytes, unsigned long long* byte_counters) {
  constexpr unsigned kWord = 0x01010101u * kFillByte;
  ByteCounter<kCounted> counter;
  const std::int64_t chunks = bytes / 16;
  auto* const target = reinterpret_cast<uint4*>(to);
  each_tile(
      chunks,
      [&](std::int64_t n) {
#pragma unroll
        for (int i = 0; i < kAhead; ++i)
          target[n + i * kThreads] = make_uint4(kWord, kWord, kWord, kWord);  // HBM write
        counter.wrote(kFirst, 16 * kAhead);
      },
      [&](std::int64_t n) {
        target[n] = make_uint4(kWord, kWord, kWord, kWord);
        counter.wrote(kFirst, 16);
      });
  each_leftover(bytes, [&](std::int64_t i) {
    to[i] = kFillByte;
    counter.wrote(kFirst, 1);
  });
  counter.flush(byte_counters);
}

/// The same tiles, past L1 and over and over. Where a pass ends plays no part in who reads what, so all SMs stay busy
/// to the end, and each reads other tiles in every pass.
__global__ void __launch_bounds__(kThreads)
    l2_read_kernel(const uint4* from, std::int64_t tiles, std::int64_t passes, unsigned long long* checksum) {
  static_assert(kL2ProbeTile == kThreads * 32, "two chunks a thread");
  constexpr int kTilesAhead = 4;
  unsigned long long sum = 0;
  const std::int64_t all = tiles * passes, step = gridDim.x % tiles;
  std::int64_t tile = blockIdx.x % tiles;
  const auto next_tile = [&] {
    const uint4* at = from + tile * (2 * kThreads) + threadIdx.x;
    tile += step;
    if (tile >= tiles) tile -= tiles;
    return at;
  };
  std::int64_t n = blockIdx.x;
  for (; n + (kTilesAhead - 1) * std::int64_t{gridDim.x} < all; n += kTilesAhead * std::int64_t{gridDim.x}) {
    uint4 x[kTilesAhead][2];
#pragma unroll
    for (int i = 0; i < kTilesAhead; ++i) {
      const uint4* at = next_tile();
      x[i][0] = __ldcg(at), x[i][1] = __ldcg(at + kThreads);  // L2 read
    }
#pragma unroll
    for (int i = 0; i < kTilesAhead; ++i) sum += word_sum(x[i][0]) + word_sum(x[i][1]);
  }
  for (; n < all; n += gridDim.x) {
    const uint4* at = next_tile();
    sum += word_sum(__ldcg(at)) + word_sum(__ldcg(at + kThreads));
  }
  add_to(checksum, sum);
}

/// As many CTAs as run at once, or as there is work for.
template <class Kernel>
unsigned grid_for(Kernel* kernel, std::int64_t tiles) {
  int device = 0, sms = 1, per_sm = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, kThreads, 0);
  return grid_of(std::max<std::int64_t>(1, std::min<std::int64_t>(tiles, std::int64_t{sms} * per_sm)));
}
unsigned char* bytes_at(void* p) {
  return static_cast<unsigned char*>(p);
}
const unsigned char* bytes_at(const void* p) {
  return static_cast<const unsigned char*>(p);
}

}  // namespace

void launch_copy(void* to, const void* from, std::int64_t bytes, unsigned long long* byte_counters,
                 CUstream_st* stream) {
  const auto kernel = byte_counters != nullptr ? copy_kernel<true> : copy_kernel<false>;
  kernel<<<grid_for(kernel, ceil_div(bytes / 16, kTile)), kThreads, 0, stream>>>(bytes_at(to), bytes_at(from), bytes,
                                                                                 byte_counters);
  check_launch("copy");
}

void launch_read(void* checksum, const void* from, std::int64_t bytes, unsigned long long* byte_counters,
                 CUstream_st* stream) {
  const auto kernel = byte_counters != nullptr ? read_kernel<true> : read_kernel<false>;
  kernel<<<grid_for(kernel, ceil_div(bytes / 16, kTile)), kThreads, 0, stream>>>(
      static_cast<unsigned long long*>(checksum), bytes_at(from), bytes, byte_counters);
  check_launch("read");
}

void launch_fill(void* to, std::int64_t bytes, unsigned long long* byte_counters, CUstream_st* stream) {
  const auto kernel = byte_counters != nullptr ? fill_kernel<true> : fill_kernel<false>;
  kernel<<<grid_for(kernel, ceil_div(bytes / 16, kTile)), kThreads, 0, stream>>>(bytes_at(to), bytes, byte_counters);
  check_launch("fill");
}

std::uint64_t checksum_of(const void* host, std::int64_t bytes) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < bytes; i += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes_at(host) + i, static_cast<std::size_t>(std::min<std::int64_t>(4, bytes - i)));
    sum += word;
  }
  return sum;
}

void launch_l2_read(const L2ReadProbe& probe, CUstream_st* stream) {
  const std::int64_t tiles = probe.bytes / kL2ProbeTile;
  l2_read_kernel<<<grid_for(l2_read_kernel, tiles * probe.passes), kThreads, 0, stream>>>(
      static_cast<const uint4*>(probe.from), tiles, probe.passes, probe.checksum);
  check_launch("l2_read");
}
Bytes l2_read_bytes(const L2ReadProbe& probe) {
  return Count(probe.passes) * Bytes(probe.bytes / kL2ProbeTile * kL2ProbeTile);
}

}  // namespace hbmscope::kernels
