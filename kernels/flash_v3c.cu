// Idea:    flash_v3b with warpgroups that take turns at the tensor cores: one multiplies while others are in softmax
// Reads:   Q = B*H*Nq*d*e; K = B*H*ceil(Nq/Br)*Nk*d*e; V = B*H*ceil(Nq/Br)*Nk*dv*e
// Writes:  O = B*H*Nq*dv*e; LSE = B*H*Nq*4
// On chip: (Br*D + 4*Bc*D)*e
// Costs:   2*B*H*ceil(Nq/Br)*Br*ceil(Nk/Bc)*Bc*(D+D)
//
// Ping-pong (FlashAttention-3, arXiv 2407.08608, section 3.1). In its turn a warpgroup makes two products at once, P V
// of the last tile of keys and Q K^T of the next, and hands the turn on when both are under way. Left alone, warpgroups
// fall into step, and the tensor cores wait for all of them.
#include "kernels/flash_v3.cuh"
#include "kernels/flash_v3_rung.cuh"

namespace hbmscope::kernels {
namespace {

template <class T, class Tile, bool kCounted>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    flash_v3c_kernel(const __grid_constant__ AttentionArgs a, const __grid_constant__ InputMaps maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char smem_bytes[];
  const Smem<Tile> smem(smem_bytes);
  if (threadIdx.x == 0) smem.init_barriers();
  __syncthreads();
  ByteCounter<kCounted> counter;
  if (threadIdx.x < 128) {
    shrink_registers<Tile::kCopyRegisters>();
    const Work<Tile> work(a, blockIdx.x);
    if (threadIdx.x == 0 && work.kv_tiles > 0) {
      copy_all_queries(a, maps, smem, work, counter);
      copy_all_keys(a, maps, smem, work, 0, counter);
    }
  } else {
    grow_registers<Tile::kComputeRegisters>();
    const Work<Tile> work(a, blockIdx.x);
    const int kv_tiles = work.kv_tiles;
    Rows64<T, Tile> rows(smem, work, static_cast<int>(threadIdx.x) / 128 - 1);
    if (kv_tiles > 0) {
      wait_barrier(smem.q_full(rows.warpgroup), 0);
      rows.take_q();
      const auto turn_of = [&](int who) { return 1 + who % Tile::kWarpgroups; };  // a named barrier
      const auto take_turn = [&](bool first) {
        if (!first) sync_named(turn_of(rows.warpgroup), 256);
      };
      const auto hand_on = [&](bool last) {
        if (!last) arrive_named(turn_of(rows.warpgroup + 1), 256);
      };
      const bool leads = rows.warpgroup == 0, closes = rows.warpgroup == Tile::kWarpgroups - 1;
      smem.wait_k(0);
      take_turn(leads);
      rows.start_qk(smem.k_tile(0));
      hand_on(closes && kv_tiles == 1);
      wait_wgmma<0>();
      release(smem.k_free(0));
      rows.softmax(a);
#pragma unroll 1
      for (int n = 1; n < kv_tiles; ++n) {
        smem.wait_k(n);
        smem.wait_v(n - 1);
        take_turn(false);
        rows.start_qk(smem.k_tile(n));
        rows.start_pv(smem.v_tile(n - 1));
        hand_on(closes && n + 1 == kv_tiles);
        wait_wgmma<0>();
        release(smem.k_free(n));
        release(smem.v_free(n - 1));
        rows.softmax(a);
      }
      smem.wait_v(kv_tiles - 1);
      rows.start_pv(smem.v_tile(kv_tiles - 1));
      wait_wgmma<0>();
    }
    rows.store(a, Work<Tile>(a, blockIdx.x), counter);
  }
  counter.flush(a.byte_counters);
#endif
}

}  // namespace

HBMSCOPE_FLASH_V3_RUNG(c, Tile::kThreads)

}  // namespace hbmscope::kernels
