// Idea:    flash_v3b with softmax that begins while the product before it still runs
// Reads:   Q = B*H*Nq*d*e; K = B*H*ceil(Nq/Br)*Nk*d*e; V = B*H*ceil(Nq/Br)*Nk*dv*e
// Writes:  O = B*H*Nq*dv*e; LSE = B*H*Nq*4
// On chip: (Br*D + 4*Bc*D)*e
// Costs:   2*B*H*ceil(Nq/Br)*Br*ceil(Nk/Bc)*Bc*(D+D)
//
// Overlap inside a warpgroup (FlashAttention-3, arXiv 2407.08608, section 3.2). Q K^T of the next tile of keys and P V
// of this one are started together; scores come first, and their maximum is taken while P V runs.
#include "kernels/flash_v3.cuh"
#include "kernels/flash_v3_rung.cuh"

namespace hbmscope::kernels {
namespace {

template <class T, class Tile, bool kCounted>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    flash_v3d_kernel(const __grid_constant__ AttentionArgs a, const __grid_constant__ InputMaps maps) {
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
        const Rescale<1> by = rows.mask_and_maximum(a);
        // The keys of the next step are waited for here and not where they are needed: the compiler would move the wait
        // that follows up to the one above. It moves none across a loop.
        if (n + 1 < kv_tiles) smem.wait_k(n + 1);
        wait_wgmma<0>();
        release(smem.v_free(n - 1));
        rows.exponentiate_scores(a, by);
        rows.take_p(by);  // not before P V is done with the registers of P
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

HBMSCOPE_FLASH_V3_RUNG(d, Tile::kThreads)

}  // namespace hbmscope::kernels
