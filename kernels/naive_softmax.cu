// Idea:    P = softmax(S / sqrt(d)) by rows; a row stays on chip from its one read to its one write
// Reads:   S = B*H*Nq*Nk*e
// Writes:  P = B*H*Nq*Nk*e
// On chip: Nk*e
// Costs:   5*B*H*Nq*Nk
//
// Rows up to 1024 elements of 16 bits (512 of 32) lie in the registers of a warp. Longer ones lie in SMEM, and what 227
// KiB do not hold of them in the registers of the CTA (together about 148k keys of 16 bits): there maximum and sum are
// found in one sweep (Milakov and Gimelshein, arXiv 1805.02867), and each thread calls for its part of the next row as
// soon as it is done with its part of this one. Beyond that the same two sweeps read the row from HBM twice. Hidden
// keys weigh nothing, by assignment; a row without visible keys is all zeros. Costs counts scale, subtraction,
// exponential, sum and division.
#include <algorithm>
#include <type_traits>

#include "kernels/naive.hpp"
#include "kernels/naive_softmax.cuh"

namespace hbmscope::kernels {
namespace {

constexpr int kRowThreads = 256;    // of a CTA that holds rows in registers
constexpr int kLongThreads = 1024;  // where SMEM holds few rows at once
constexpr int kRowChunks = 4;       // 16-byte chunks in a thread's registers
constexpr int kMaxWarps = kLongThreads / kWarpSize;

// ---- rows in registers ---------------------------------------------------------------------------------------------

/// A warp holds a row.
template <class T, bool kCounted>
__global__ void __launch_bounds__(kRowThreads) softmax_in_registers(const __grid_constant__ AttentionArgs a) {
  constexpr int kN = kChunkElements<T>;
  ByteCounter<kCounted> counter;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize, lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const std::int64_t index = std::int64_t{blockIdx.x} * (kRowThreads / kWarpSize) + warp;
  if (index >= rows_of(a)) return;
  const Row<T> row = row_of<T>(a, index);
  const float to_log2 = a.to_log2;

  // HBM read: a row of S
  uint4 chunk[kRowChunks];
#pragma unroll
  for (int i = 0; i < kRowChunks; ++i) {
    const int n = lane + i * kWarpSize;
    if (n >= row.chunks) continue;
    chunk[i] = load_chunk(row.s + n * kN, valid_in(row, n));
    counter.read(Tensor::S, valid_in(row, n) * static_cast<int>(sizeof(T)));
  }
  MaxSum state;
#pragma unroll
  for (int i = 0; i < kRowChunks; ++i) {
    if (lane + i * kWarpSize >= row.chunks) continue;
    float x[kN];
    visible_scores(x, chunk[i], row, lane + i * kWarpSize);
    update(state, x, to_log2);
  }
  state = warp_merge(state, to_log2);

  // HBM write: a row of P
  const float shift = shift_of(state, to_log2);
  const bool hidden = row.seen.empty();
#pragma unroll
  for (int i = 0; i < kRowChunks; ++i) {
    const int n = lane + i * kWarpSize;
    if (n >= row.chunks) continue;
    float x[kN];
    visible_scores(x, chunk[i], row, n);
    normalise(x, shift, hidden, to_log2);
    write_chunk(row, n, x, counter);
  }
  counter.flush(a.byte_counters);
}

// ---- rows in SMEM --------------------------------------------------------------------------------------------------

constexpr int kParts = 4;  // of a row: the first is worked on while the others are under way

/// Each thread keeps to its own chunks of SMEM, so nothing but the row's maximum and sum needs a barrier. `kTail` more
/// chunks of a thread, the last of the row, stay in its registers.
template <class T, int kThreads, int kTail, bool kCounted>
__global__ void __launch_bounds__(kThreads) softmax_in_smem(const __grid_constant__ AttentionArgs a) {
  constexpr int kN = kChunkElements<T>;
  extern __shared__ __align__(128) unsigned char smem_bytes[];
  __shared__ MaxSum partial[2][kMaxWarps];
  ByteCounter<kCounted> counter;
  const std::int64_t rows = rows_of(a);
  const float to_log2 = a.to_log2;
  const int chunks = static_cast<int>(ceil_div(a.seqlen_kv, kN)), in_smem = chunks - kTail * kThreads;
  const int part = static_cast<int>(ceil_div(ceil_div(in_smem, kThreads), kParts)) * kThreads;  // chunks of a part
  uint4* const held = reinterpret_cast<uint4*>(smem_bytes);
  uint4 tail[kTail > 0 ? kTail : 1];
  const auto each_chunk = [&](int of, auto&& work) {
    const int end = min(in_smem, (of + 1) * part);
    for (int n = of * part + static_cast<int>(threadIdx.x); n < end; n += kThreads) work(n);
  };
  const auto each_of_tail = [&](auto&& work) {
#pragma unroll
    for (int i = 0; i < kTail; ++i) work(in_smem + static_cast<int>(threadIdx.x) + i * kThreads, tail[i]);
  };
  const auto call_for = [&](const Row<T>& row, int n) {  // HBM read: 16 bytes of S
    const int bytes = valid_in(row, n) * static_cast<int>(sizeof(T));
    copy_async_16(smem_address(held + n), row.s + n * kN, bytes);
    counter.read(Tensor::S, bytes);
  };
  const auto load_of_tail = [&](const Row<T>& row, int n, uint4& chunk) {  // HBM read: 16 bytes of S
    chunk = load_chunk(row.s + n * kN, valid_in(row, n));
    counter.read(Tensor::S, valid_in(row, n) * static_cast<int>(sizeof(T)));
  };

  std::int64_t index = blockIdx.x;
  if (index >= rows) return;
  Row<T> row = row_of<T>(a, index);
#pragma unroll
  for (int of = 0; of < kParts; ++of) {
    each_chunk(of, [&](int n) { call_for(row, n); });
    commit_copies();
  }
  each_of_tail([&](int n, uint4& chunk) { load_of_tail(row, n, chunk); });
  for (int parity = 0; index < rows; parity ^= 1) {
    MaxSum state;
    const auto take_in = [&](int n, const uint4& chunk) {
      float x[kN];
      visible_scores(x, chunk, row, n);
      update(state, x, to_log2);
    };
    const auto sweep = [&](int of) { each_chunk(of, [&](int n) { take_in(n, held[n]); }); };
    wait_copies<3>(), sweep(0);
    wait_copies<2>(), sweep(1);
    wait_copies<1>(), sweep(2);
    wait_copies<0>(), sweep(3);
    each_of_tail(take_in);
    state = cta_merge(state, partial[parity], to_log2);

    const float shift = shift_of(state, to_log2);
    const bool hidden = row.seen.empty();
    index += gridDim.x;
    const Row<T> next = row_of<T>(a, min(index, rows - 1));
#pragma unroll
    for (int of = 0; of < kParts; ++of) {
      each_chunk(of, [&](int n) {
        float x[kN];
        visible_scores(x, held[n], row, n);
        if (index < rows) call_for(next, n);
        normalise(x, shift, hidden, to_log2);
        write_chunk(row, n, x, counter);  // HBM write: 16 bytes of P
      });
      commit_copies();
    }
    each_of_tail([&](int n, uint4& chunk) {
      float x[kN];
      visible_scores(x, chunk, row, n);
      if (index < rows) load_of_tail(next, n, chunk);
      normalise(x, shift, hidden, to_log2);
      write_chunk(row, n, x, counter);  // HBM write: 16 bytes of P
    });
    row = next;
  }
  counter.flush(a.byte_counters);
}

// ---- rows beyond the chip -----------------------------------------------------------------------------------------

template <class T, bool kCounted>
__global__ void __launch_bounds__(kLongThreads) softmax_read_twice(const __grid_constant__ AttentionArgs a) {
  constexpr int kN = kChunkElements<T>;
  __shared__ MaxSum partial[2][kMaxWarps];
  ByteCounter<kCounted> counter;
  const std::int64_t rows = rows_of(a);
  const float to_log2 = a.to_log2;
  int parity = 0;
  for (std::int64_t index = blockIdx.x; index < rows; index += gridDim.x, parity ^= 1) {
    const Row<T> row = row_of<T>(a, index);
    const auto sweep = [&](auto&& work) {  // HBM read: a row of S, some chunks ahead
      for (int n = static_cast<int>(threadIdx.x); n < row.chunks; n += kRowChunks * kLongThreads) {
        uint4 chunk[kRowChunks];
#pragma unroll
        for (int i = 0; i < kRowChunks; ++i) {
          const int at = n + i * kLongThreads;
          if (at >= row.chunks) continue;
          chunk[i] = load_chunk(row.s + std::int64_t{at} * kN, valid_in(row, at));
          counter.read(Tensor::S, valid_in(row, at) * static_cast<int>(sizeof(T)));
        }
#pragma unroll
        for (int i = 0; i < kRowChunks; ++i) {
          const int at = n + i * kLongThreads;
          if (at >= row.chunks) continue;
          float x[kN];
          visible_scores(x, chunk[i], row, at);
          work(at, x);
        }
      }
    };
    MaxSum state;
    sweep([&](int, const float(&x)[kN]) { update(state, x, to_log2); });
    state = cta_merge(state, partial[parity], to_log2);
    const float shift = shift_of(state, to_log2);
    const bool hidden = row.seen.empty();
    sweep([&](int n, float(&x)[kN]) {
      normalise(x, shift, hidden, to_log2);
      write_chunk(row, n, x, counter);  // HBM write: 16 bytes of P
    });
  }
  counter.flush(a.byte_counters);
}

// ---- launches ------------------------------------------------------------------------------------------------------

constexpr int kStaticSmem = 2 * kMaxWarps * static_cast<int>(sizeof(MaxSum));
constexpr int kTailChunks = kRowChunks * kLongThreads;  // that registers of a CTA hold where SMEM is full

int device_attribute(cudaDeviceAttr attribute, int otherwise) {
  int device = 0, value = 0;
  if (cudaGetDevice(&device) == cudaSuccess && cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess)
    return value;
  cudaGetLastError();  // no device is no failed launch
  return otherwise;
}

std::int64_t smem_chunks() {
  constexpr int kHopperSmem = 227 * 1024;
  return (device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, kHopperSmem) - kStaticSmem) / 16;
}

/// As many CTAs as run at once, or one a row; each takes rows in turn.
template <class Kernel>
void launch_persistent(Kernel* kernel, const Call& call, std::int64_t rows, int threads, std::size_t smem) {
  const auto* address = reinterpret_cast<const void*>(kernel);
  allow_smem(call, address, smem, "naive softmax");
  cudaFuncSetAttribute(address, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  int per_sm = 1;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, threads, smem);
  const std::int64_t at_once = std::int64_t{std::max(per_sm, 1)} * device_attribute(cudaDevAttrMultiProcessorCount, 1);
  kernel<<<grid_of(std::min(rows, at_once)), static_cast<unsigned>(threads), smem, call.stream>>>(call.args);
}

template <class T, bool kCounted>
void launch_of(const Call& call) {
  const AttentionArgs& a = call.args;
  const std::int64_t rows = std::int64_t{a.batch} * a.num_heads * a.seqlen_q,
                     chunks = ceil_div(a.seqlen_kv, kChunkElements<T>);
  if (call.plan.softmax_reads > 1) {
    launch_persistent(softmax_read_twice<T, kCounted>, call, rows, kLongThreads, 0);
  } else if (chunks <= kWarpSize * kRowChunks) {
    softmax_in_registers<T, kCounted>
        <<<grid_of(ceil_div(rows, kRowThreads / kWarpSize)), kRowThreads, 0, call.stream>>>(a);
  } else {
    // Threads enough to keep up with HBM, and few enough that each has several chunks of the next row under way.
    const auto in_smem = [&](auto threads) {
      launch_persistent(softmax_in_smem<T, decltype(threads)::value, 0, kCounted>, call, rows, threads,
                        static_cast<std::size_t>(16 * chunks));
    };
    if (chunks <= 512) {
      in_smem(std::integral_constant<int, 64>{});
    } else if (chunks <= 1024) {
      in_smem(std::integral_constant<int, 128>{});
    } else if (16 * chunks <= 72 * 1024) {  // three rows and more an SM
      in_smem(std::integral_constant<int, 256>{});
    } else if (chunks <= smem_chunks()) {
      in_smem(std::integral_constant<int, kLongThreads>{});
    } else {
      launch_persistent(softmax_in_smem<T, kLongThreads, kRowChunks, kCounted>, call, rows, kLongThreads,
                        static_cast<std::size_t>(16 * (chunks - kTailChunks)));
    }
  }
  check_launch("naive softmax");
}
template <class T>
void launch_dtype(const Call& call) {
  call.counted ? launch_of<T, true>(call) : launch_of<T, false>(call);
}

}  // namespace

void launch_naive_softmax(const Call& call) {
  if (call.dtype == Dtype::fp32) return launch_dtype<float>(call);
  call.dtype == Dtype::bf16 ? launch_dtype<BFloat16>(call) : launch_dtype<Half>(call);
}

std::int64_t naive_softmax_reads(const AttentionShape& s) {
  return ceil_div(s.seqlen_kv * s.element_bytes(), 16) <= smem_chunks() + kTailChunks ? 1 : 2;
}

}  // namespace hbmscope::kernels
