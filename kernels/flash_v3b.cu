// Idea:    flash_v3a with a warpgroup of its own for the copies, which leaves its registers to the others
// Reads:   Q = B*H*Nq*d*e; K = B*H*ceil(Nq/Br)*Nk*d*e; V = B*H*ceil(Nq/Br)*Nk*dv*e
// Writes:  O = B*H*Nq*dv*e; LSE = B*H*Nq*4
// On chip: (Br*D + 4*Bc*D)*e
// Costs:   2*B*H*ceil(Nq/Br)*Br*ceil(Nk/Bc)*Bc*(D+D)
//
// A thread that only copies runs ahead of those that compute: it waits for a free place, they wait for a full one, and
// nobody for the whole CTA. Copying takes few registers, so the warpgroups that compute have more, and one can be in
// its softmax while another multiplies.
#include "kernels/flash_v3.cuh"
#include "kernels/flash_v3_rung.cuh"

namespace hbmscope::kernels {
namespace {

template <class T, class Tile, bool kCounted>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    flash_v3b_kernel(const __grid_constant__ AttentionArgs a, const __grid_constant__ InputMaps maps) {
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
#pragma unroll 1
      for (int n = 0; n < kv_tiles; ++n) {
        smem.wait_k(n);
        rows.start_qk(smem.k_tile(n));
        wait_wgmma<0>();
        release(smem.k_free(n));
        rows.softmax(a);
        smem.wait_v(n);
        rows.start_pv(smem.v_tile(n));
        wait_wgmma<0>();
        release(smem.v_free(n));
      }
    }
    rows.store(a, Work<Tile>(a, blockIdx.x), counter);
  }
  counter.flush(a.byte_counters);
#endif
}

}  // namespace

HBMSCOPE_FLASH_V3_RUNG(b, Tile::kThreads)

}  // namespace hbmscope::kernels
