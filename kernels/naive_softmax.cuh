#pragma once
#include "kernels/chunk.cuh"
#include "kernels/softmax.cuh"

/// The steps of a softmax over rows of S in HBM.
namespace hbmscope::kernels {

/// A row of S and P, and the keys that its query sees.
template <class T>
struct Row {
  const T* s;
  T* p;
  int keys, chunks;
  KeyRange seen;
};
template <class T>
__device__ inline Row<T> row_of(const AttentionArgs& a, std::int64_t row) {
  const int q = static_cast<int>(row % a.seqlen_q);
  const std::int64_t offset = row * a.score_stride;
  return {a.get<const T>(Tensor::S) + offset, a.get<T>(Tensor::P) + offset, a.seqlen_kv,
          static_cast<int>(ceil_div(a.seqlen_kv, kChunkElements<T>)), visible_keys(a, q, q)};
}
__device__ inline std::int64_t rows_of(const AttentionArgs& a) {
  return std::int64_t{a.batch} * a.num_heads * a.seqlen_q;
}
/// Elements of the row in its chunk `n`, at most a chunk's.
template <class T>
__device__ inline int valid_in(const Row<T>& row, int n) {
  return min(kChunkElements<T>, row.keys - n * kChunkElements<T>);
}

/// A chunk's scores, the hidden ones -inf.
template <class T>
__device__ inline void visible_scores(float (&x)[kChunkElements<T>], uint4 chunk, const Row<T>& row, int n) {
  unpack_chunk<T>(x, chunk);
  const int first = n * kChunkElements<T>;
  if (first >= row.seen.first && first + kChunkElements<T> - 1 <= row.seen.last) return;
#pragma unroll
  for (int i = 0; i < kChunkElements<T>; ++i) {
    if (first + i < row.seen.first || first + i > row.seen.last) x[i] = kMinusInfinity;
  }
}

/// HBM write: chunk `n` of a row of P.
template <class T, class Counter>
__device__ inline void write_chunk(const Row<T>& row, int n, const float (&p)[kChunkElements<T>], Counter& counter) {
  const int valid = valid_in(row, n);
  store_chunk(row.p + n * kChunkElements<T>, pack_chunk<T>(p), valid);
  counter.wrote(Tensor::P, valid * static_cast<int>(sizeof(T)));
}

// ---- maximum and sum over the threads of a row ---------------------------------------------------------------------

__device__ inline float warp_max(float x) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, offset));
  return x;
}
__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

/// Maximum m of some scores, and l, the sum of their exp((score - m) / sqrt(d)).
struct MaxSum {
  float m = kMinusInfinity, l = 0;
};
/// What l is to be multiplied with when m becomes `most`. Nothing seen yet is no reason for -inf - -inf.
__device__ inline float rescaling(float m, float most, float to_log2) {
  return m == most ? 1.0f : exp2_fast((m - most) * to_log2);
}
/// Takes in one chunk.
template <int kN>
__device__ inline void update(MaxSum& state, const float (&x)[kN], float to_log2) {
  float most = state.m;
#pragma unroll
  for (int i = 0; i < kN; ++i) most = fmaxf(most, x[i]);
  const float base = most == kMinusInfinity ? 0.0f : most;
  const float shift = base * to_log2;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kN; ++i) sum += exp2_fast(fmaf(x[i], to_log2, -shift));
  state = {most, state.l * rescaling(state.m, most, to_log2) + sum};
}
__device__ inline MaxSum warp_merge(MaxSum state, float to_log2) {
  const float most = warp_max(state.m);
  return {most, warp_sum(state.l * rescaling(state.m, most, to_log2))};
}
/// Over the whole CTA. `partial` has room for one MaxSum a warp, and is free again after the next barrier but one.
__device__ inline MaxSum cta_merge(MaxSum state, MaxSum* partial, float to_log2) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize, lane = static_cast<int>(threadIdx.x) % kWarpSize;
  state = warp_merge(state, to_log2);
  if (lane == 0) partial[warp] = state;
  __syncthreads();
  return warp_merge(lane < static_cast<int>(blockDim.x) / kWarpSize ? partial[lane] : MaxSum{}, to_log2);
}

/// What is subtracted from a score in units of log2 e, so that 2 to that power is P: m and, since division is
/// subtraction there, log2 l.
__device__ inline float shift_of(MaxSum state, float to_log2) {
  return state.m * to_log2 + __log2f(state.l);
}
/// P = exp((s - m) / sqrt(d)) / l, zeros where no key is visible. Where m is infinite because S overflowed, this is
/// NaN.
template <int kN>
__device__ inline void normalise(float (&x)[kN], float shift, bool hidden, float to_log2) {
#pragma unroll
  for (int i = 0; i < kN; ++i) x[i] = hidden ? 0.0f : exp2_fast(fmaf(x[i], to_log2, -shift));
}

}  // namespace hbmscope::kernels
