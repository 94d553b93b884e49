// Idea:    the two products of naive in fp32: the same tiles on ordinary cores, 8 x 8 elements of the result a thread
// Reads:   Q = B*H*ceil(Nk/Bc)*Nq*d*e; K = B*H*ceil(Nq/Br)*Nk*d*e;
//          P = B*H*ceil(dv/Bc)*Nq*Nk*e; V = B*H*ceil(Nq/Br)*Nk*dv*e
// Writes:  S = B*H*Nq*Nk*e; O = B*H*Nq*dv*e
// On chip: 2*(Br+Bc+8)*16*e
// Costs:   2*B*H*ceil(Nq/Br)*Br*(ceil(Nk/Bc)*Bc*ceil(d/16)*16 + ceil(Nk/16)*16*ceil(dv/Bc)*Bc)
//
// Slices of 16 pass through registers into SMEM, depth outermost, so that a thread finds its rows and its columns side
// by side; while one slice is multiplied, the next is on its way.
#include "kernels/gemm_tile.cuh"
#include "kernels/naive.hpp"

namespace hbmscope::kernels {
namespace {

constexpr int kTile = 128, kDepth = 16, kThreads = 256;
constexpr int kPitch = kTile + 4;                         // keeps 16-byte alignment, and banks apart
constexpr int kChunks = kTile * kDepth / (4 * kThreads);  // 16-byte chunks of a slice a thread
using Slice = float[kDepth][kPitch];

/// Part of an operand on its way to SMEM.
struct InFlight {
  uint4 chunk[kChunks];
};

/// Where the thread's chunk `i` of a slice comes from: by rows of the result (Q, K, P) or by depth (V).
template <OperandB kOrder>
__device__ inline int2 row_and_element(int i) {
  constexpr int kAcross = (kOrder == OperandB::by_column ? kDepth : kTile) / 4;
  const int n = static_cast<int>(threadIdx.x) + i * kThreads;
  return make_int2(n / kAcross, n % kAcross * 4);
}

/// HBM read: the valid `rows` by `width` elements of a slice; zeros for the rest.
template <OperandB kOrder, class Counter>
__device__ inline InFlight fetch(const float* from, std::int64_t stride, int rows, int width, Tensor tensor,
                                 Counter& counter) {
  InFlight x;
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const int2 at = row_and_element<kOrder>(i);
    const int valid = min(4, width - at.y);
    x.chunk[i] = make_uint4(0, 0, 0, 0);
    if (at.x >= rows || valid <= 0) continue;
    x.chunk[i] = load_chunk(from + at.x * stride + at.y, valid);
    counter.read(tensor, 4 * valid);
  }
  return x;
}
template <OperandB kOrder>
__device__ inline void put(Slice& slice, const InFlight& x) {
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const int2 at = row_and_element<kOrder>(i);
    if constexpr (kOrder == OperandB::by_column) {
      float of[4];
      unpack_chunk<float>(of, x.chunk[i]);
#pragma unroll
      for (int j = 0; j < 4; ++j) slice[at.y + j][at.x] = of[j];
    } else {
      *reinterpret_cast<uint4*>(&slice[at.x][at.y]) = x.chunk[i];
    }
  }
}

/// The thread's rows (or columns) of a tile: four from 4 i on, and four in the other half.
__device__ inline int owned(int i, int n) {
  return n / 4 * (kTile / 2) + 4 * i + n % 4;
}
__device__ inline void read_owned(float (&x)[8], const float* of_slice, int i) {
  const float4 low = *reinterpret_cast<const float4*>(of_slice + owned(i, 0));
  const float4 high = *reinterpret_cast<const float4*>(of_slice + owned(i, 4));
  x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
  x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
}

struct ThreadPlace {
  int row, column;
};
__device__ inline ThreadPlace thread_place() {
  return {static_cast<int>(threadIdx.x) / 16, static_cast<int>(threadIdx.x) % 16};
}

/// c += A B over `slices` slices; `fetch_a(k)` and `fetch_b(k)` start the reads of slice k.
template <OperandB kB, class FetchA, class FetchB>
__device__ inline void multiply(float (&c)[8][8], int slices, FetchA&& fetch_a, FetchB&& fetch_b) {
  __shared__ __align__(16) Slice a[2], b[2];
  const ThreadPlace at = thread_place();
  put<OperandB::by_column>(a[0], fetch_a(0));
  put<kB>(b[0], fetch_b(0));
  __syncthreads();
#pragma unroll 1
  for (int k = 0; k < slices; ++k) {
    const bool more = k + 1 < slices;
    InFlight next_a{}, next_b{};
    if (more) next_a = fetch_a(k + 1), next_b = fetch_b(k + 1);
#pragma unroll
    for (int x = 0; x < kDepth; ++x) {
      float rows[8], columns[8];
      read_owned(rows, a[k & 1][x], at.row);
      read_owned(columns, b[k & 1][x], at.column);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) c[i][j] = fmaf(rows[i], columns[j], c[i][j]);
      }
    }
    if (more) {
      put<OperandB::by_column>(a[(k + 1) & 1], next_a);
      put<kB>(b[(k + 1) & 1], next_b);
    }
    __syncthreads();
  }
}

/// HBM write: the valid `rows` by `columns` elements of the result.
template <class Counter>
__device__ inline void store(float* to, std::int64_t stride, int rows, int columns, const float (&c)[8][8],
                             Tensor tensor, Counter& counter) {
  const ThreadPlace at = thread_place();
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = owned(at.row, i);
    if (row >= rows) continue;
#pragma unroll
    for (int j = 0; j < 8; j += 4) {
      const int column = owned(at.column, j), valid = min(4, columns - column);
      if (valid <= 0) continue;
      const float x[4] = {c[i][j], c[i][j + 1], c[i][j + 2], c[i][j + 3]};
      store_chunk(to + row * stride + column, pack_chunk<float>(x), valid);
      counter.wrote(tensor, 4 * valid);
    }
  }
}

template <bool kCounted>
__global__ void __launch_bounds__(kThreads) qk_fp32_kernel(const __grid_constant__ AttentionArgs a) {
  ByteCounter<kCounted> counter;
  const TilePlace at = score_tile<sizeof(float)>(a, blockIdx.x, kTile, kTile);
  const int d = a.head_dim, q_first = at.row * kTile, k_first = at.column * kTile;
  const int q_rows = a.seqlen_q - q_first, k_rows = a.seqlen_kv - k_first;
  const float* q = a.get<const float>(Tensor::Q) + head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, d) +
                   std::int64_t{q_first} * d;
  const float* k = a.get<const float>(Tensor::K) +
                   head_offset(at.batch, kv_head_of(a, at.head), a.num_kv_heads, a.seqlen_kv, d) +
                   std::int64_t{k_first} * d;
  float s[8][8] = {};
  multiply<OperandB::by_column>(
      s, static_cast<int>(ceil_div(d, kDepth)),
      [&](int slice) {
        return fetch<OperandB::by_column>(q + slice * kDepth, d, q_rows, d - slice * kDepth, Tensor::Q, counter);
      },
      [&](int slice) {
        return fetch<OperandB::by_column>(k + slice * kDepth, d, k_rows, d - slice * kDepth, Tensor::K, counter);
      });
  float* to = a.get<float>(Tensor::S) + head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, a.score_stride) +
              std::int64_t{q_first} * a.score_stride + k_first;
  store(to, a.score_stride, q_rows, k_rows, s, Tensor::S, counter);
  counter.flush(a.byte_counters);
}

template <bool kCounted>
__global__ void __launch_bounds__(kThreads) pv_fp32_kernel(const __grid_constant__ AttentionArgs a) {
  ByteCounter<kCounted> counter;
  const TilePlace at = output_tile(a, blockIdx.x, kTile, kTile);
  const int dv = a.head_dim_v, q_first = at.row * kTile, x_first = at.column * kTile;
  const int q_rows = a.seqlen_q - q_first, columns = dv - x_first;
  const float* p = a.get<const float>(Tensor::P) +
                   head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, a.score_stride) +
                   std::int64_t{q_first} * a.score_stride;
  const float* v = a.get<const float>(Tensor::V) +
                   head_offset(at.batch, kv_head_of(a, at.head), a.num_kv_heads, a.seqlen_kv, dv) + x_first;
  float o[8][8] = {};
  multiply<OperandB::by_depth>(
      o, static_cast<int>(ceil_div(a.seqlen_kv, kDepth)),
      [&](int slice) {
        const int c = slice * kDepth;
        return fetch<OperandB::by_column>(p + c, a.score_stride, q_rows, a.seqlen_kv - c, Tensor::P, counter);
      },
      [&](int slice) {
        const int c = slice * kDepth;
        return fetch<OperandB::by_depth>(v + std::int64_t{c} * dv, dv, a.seqlen_kv - c, columns, Tensor::V, counter);
      });
  float* to = a.get<float>(Tensor::O) + head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, dv) +
              std::int64_t{q_first} * dv + x_first;
  store(to, dv, q_rows, columns, o, Tensor::O, counter);
  counter.flush(a.byte_counters);
}

template <class Kernel>
void launch(Kernel* kernel, const Call& call, std::int64_t columns, const char* what) {
  const AttentionArgs& a = call.args;
  const std::int64_t ctas = ceil_div(a.seqlen_q, kTile) * ceil_div(columns, kTile) * a.num_heads * a.batch;
  kernel<<<grid_of(ctas), kThreads, 0, call.stream>>>(a);
  check_launch(what);
}

}  // namespace

void launch_naive_qk_fp32(const Call& call) {
  launch(call.counted ? qk_fp32_kernel<true> : qk_fp32_kernel<false>, call, call.args.seqlen_kv, "naive qk");
}
void launch_naive_pv_fp32(const Call& call) {
  launch(call.counted ? pv_fp32_kernel<true> : pv_fp32_kernel<false>, call, call.args.head_dim_v, "naive pv");
}

}  // namespace hbmscope::kernels
