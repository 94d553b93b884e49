// Idea:    flash_v3d whose exponentials do not wait for a maximum: that of the tiles before will mostly do
// Reads:   Q = B*H*Nq*d*e; K = B*H*ceil(Nq/Br)*Nk*d*e; V = B*H*ceil(Nq/Br)*Nk*dv*e
// Writes:  O = B*H*Nq*dv*e; LSE = B*H*Nq*4
// On chip: (Br*D + 4*Bc*D)*e
// Costs:   2*B*H*ceil(Nq/Br)*Br*ceil(Nk/Bc)*Bc*(D+D)
//
// Softmax is the same whatever is subtracted, so long as the exponentials stay in range. flash_v3d takes the maximum of
// each tile before its first exponential; here the old one stands until a sum of exponentials, which is wanted anyway,
// says that a row has outgrown it (FlashAttention-4, arXiv 2603.05451, rescales O only then, but still takes each
// maximum).
#include "kernels/flash_v3.cuh"
#include "kernels/flash_v3_rung.cuh"

namespace hbmscope::kernels {
namespace {

template <class T, class Tile, bool kCounted>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    flash_v3e_kernel(const __grid_constant__ AttentionArgs a, const __grid_constant__ InputMaps maps) {
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
      smem.wait_k(0);
      rows.start_qk(smem.k_tile(0));
      wait_wgmma<0>();
      release(smem.k_free(0));
      rows.softmax(a);
      if (kv_tiles > 1) smem.wait_k(1);
#pragma unroll 1
      for (int n = 1; n < kv_tiles; ++n) {
        rows.start_qk(smem.k_tile(n));
        smem.wait_v(n - 1);
        rows.start_pv(smem.v_tile(n - 1));
        wait_wgmma<1>();  // the scores are there, P V still runs
        release(smem.k_free(n));
        rows.mask(a);
        // The keys of the next step are waited for here and not where they are needed: the compiler would move the wait
        // that follows up to the one above. It moves none across a loop.
        if (n + 1 < kv_tiles) smem.wait_k(n + 1);
        wait_wgmma<0>();
        release(smem.v_free(n - 1));
        rows.softmax_by_old_maximum(a);  // not before P V is done with the registers of P
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

HBMSCOPE_FLASH_V3_RUNG(e, Tile::kThreads)

}  // namespace hbmscope::kernels
