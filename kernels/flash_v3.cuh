#pragma once
#include "kernels/flash_v3_copies.cuh"

/// What the rungs of the Hopper kernel share (flash_v3a to flash_v3e, flash_v3): the steps on 64 query rows. A rung is
/// what it does with them, and when.
namespace hbmscope::kernels {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// 64 rows of O that a warpgroup computes, and the steps. They live in registers: fragments as softmax.cuh has them.
template <class T, class Tile>
struct Rows64 {
  static constexpr int kD = Tile::kHeadDim, kBkv = Tile::kBlockKv;
  static constexpr std::uint32_t kPanelQ = 64 * kPanelWidth * 2, kPanelKv = kBkv * kPanelWidth * 2;  ///< bytes
  static constexpr int kE = Tile::kElementBytes;
  static constexpr int kStepsQk = kD * kE / 32, kStepsPv = kBkv * kE / 32;  ///< of the tensor cores: 32 bytes each
  /// log2 of the largest exponential as m is found. Fp8 has few small numbers, so P uses most of its range.
  static constexpr float kHeadroom = kE == 2 ? 0 : 3;
  /// Of a lane's exponentials of a row in one tile, before m must move: each of them is a number of fp16 then, too, or
  /// of fp8.
  static constexpr float kMostSum = kE == 2 ? 1024 : 256;
  RowState<1> row;                                                                                   ///< l and m
  float o[1][kD / 8][4] = {};
  float s[1][kBkv / 8][4];
  std::uint32_t p[kStepsPv][4];
  std::uint32_t q[Tile::kQInRegisters ? kStepsQk : 1][4];
  std::uint32_t q_tile;  ///< the warpgroup's
  int warpgroup;         ///< of those that compute
  int q_first, c_first;  ///< the warp's first query; the first key of the tile whose softmax is next
  int all_first, all_last;

  __device__ Rows64(const Smem<Tile>& smem, const Work<Tile>& work, int of)
      : warpgroup(of),
        q_first(work.q_first + 64 * warpgroup + warp_row()),
        c_first(work.kv_first),
        all_first(work.keys.all_first),
        all_last(work.keys.all_last) {
    // The same in all lanes, as the compiler can tell now: the addresses of Q then cost the warp's common registers.
    q_tile = smem.q + __shfl_sync(0xffffffffu, warpgroup, 0) * (64 * kD * kE);
  }
  /// The warp's first row of the 64.
  __device__ static int warp_row() { return thread_now() % 128 / 32 * 16; }
  /// To registers, where the tile says so.
  __device__ void take_q() {
    if constexpr (Tile::kQInRegisters) {
#pragma unroll
      for (int step = 0; step < kStepsQk; ++step) {
        load_matrices(q[step], block_address<kPanelWidth>(q_tile + step / 4 * kPanelQ, warp_row(), step % 4 * 16));
      }
    }
  }
  /// S = Q K^T, under way when it returns.
  __device__ void start_qk(std::uint32_t k_tile) {
    const std::uint64_t q_at = panel_descriptor(q_tile), k_at = panel_descriptor(k_tile);
    fence_wgmma();
#pragma unroll
    for (int step = 0; step < kStepsQk; ++step) {
      const std::uint64_t k_step = further(k_at, step / 4 * kPanelKv + step % 4 * 32);
      if constexpr (Tile::kQInRegisters) {
        start_wgmma<T, OperandB::by_column>(s[0], q[step], k_step, step > 0);
      } else {
        const std::uint64_t q_step = further(q_at, step / 4 * kPanelQ + step % 4 * 32);
        start_wgmma<T, OperandB::by_column>(s[0], q_step, k_step, step > 0);
      }
    }
    commit_wgmma();
  }
  /// O += P V, under way when it returns. A tile of V is [Bkv, d], of fp8 turned round.
  __device__ void start_pv(std::uint32_t v_tile) {
    const std::uint64_t v_at = panel_descriptor(v_tile, kPanelKv);
    fence_wgmma();
#pragma unroll
    for (int step = 0; step < kStepsPv; ++step) {
      if constexpr (kE == 2) {
        start_wgmma<T, OperandB::by_depth>(o[0], p[step], further(v_at, step * (16 * kPanelWidth * 2)), 1);
      } else {
        start_wgmma<T, OperandB::by_column>(o[0], p[step], further(v_at, step / 4 * (kD * 128) + step % 4 * 32), 1);
      }
    }
    commit_wgmma();
  }
  /// Hides what the mask hides in the next tile of keys.
  __device__ void mask(const AttentionArgs& a) {
    if (c_first < all_first || c_first + kBkv - 1 > all_last) mask_scores<1, kBkv>(s, a, q_first, c_first);
    c_first += kBkv;
  }
  /// And m = max(m, row maximum).
  __device__ Rescale<1> mask_and_maximum(const AttentionArgs& a) {
    mask(a);
    return update_maximum(row, s, a.to_log2, kHeadroom);
  }
  /// S = exp(S - m), and l to go with it.
  __device__ void exponentiate_scores(const AttentionArgs& a, const Rescale<1>& by) {
    rescale_sums(row, by);
    exponentiate(s, row, a.to_log2);
  }
  /// P = S, rounded, and O for the new maximum.
  __device__ void take_p(const Rescale<1>& by) {
#pragma unroll
    for (int n = 0; n < kBkv / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) put_p<T>(p, n, half, s[0][n][2 * half], s[0][n][2 * half + 1]);
    }
    rescale_output(o, by);
  }
  __device__ void softmax(const AttentionArgs& a) {
    const Rescale<1> by = mask_and_maximum(a);
    exponentiate_scores(a, by);
    take_p(by);
  }
  /// The same with the maximum of the tiles before, where that will do: O / l is the same with any m, as long as its
  /// exponentials stay in range, and their sum, which is wanted anyway, tells whether they do. So no exponential waits
  /// for a maximum, and O need not be rescaled. Where a row has outgrown its m, the scores are still there.
  __device__ void softmax_by_old_maximum(const AttentionArgs& a) {
    float sum[2] = {0, 0};
    exponentiate_to_p<T, kBkv>(p, s, row.m[0], sum, a.to_log2);
    if (__all_sync(0xffffffffu, sum[0] <= kMostSum && sum[1] <= kMostSum)) {  // not so where one is NaN
      row.l[0][0] += sum[0], row.l[0][1] += sum[1];
    } else {
      const Rescale<1> by = update_maximum(row, s, a.to_log2, kHeadroom);
      exponentiate_scores(a, by);
      take_p(by);
    }
  }
  /// HBM write: O tile [Br, dv], LSE [Br]
  template <class Counter>
  __device__ void store(const AttentionArgs& a, const Work<Tile>& work, Counter& counter) {
    const int first = q_first - warp_row(), rows = min(64, a.seqlen_q - first), dv = a.head_dim_v;
    finish_rows(row, o, a.o_scale);
    T* o_out = a.get<T>(Tensor::O) + head_offset(work.batch, work.head, a.num_heads, a.seqlen_q, dv);
    store_rows_by_quads(o_out + std::int64_t{first} * dv, o[0], warp_row(), rows, dv, Tensor::O, counter);
    float* lse = a.get<float>(Tensor::LSE) + head_offset(work.batch, work.head, a.num_heads, a.seqlen_q, 1);
    store_lse<1>(lse + first, row, warp_row(), rows, counter);
  }
};

#endif

}  // namespace hbmscope::kernels
