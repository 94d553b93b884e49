// Idea:    flash_v2 with tiles that the copy engine brings and products that a warpgroup makes from SMEM
// Reads:   Q = B*H*Nq*d*e; K = B*H*ceil(Nq/Br)*Nk*d*e; V = B*H*ceil(Nq/Br)*Nk*dv*e
// Writes:  O = B*H*Nq*dv*e; LSE = B*H*Nq*4
// On chip: (Br*D + 4*Bc*D)*e
// Costs:   2*B*H*ceil(Nq/Br)*Br*ceil(Nk/Bc)*Bc*(D+D)
//
// First rung of the Hopper kernel. One thread starts copies of whole tiles, and products read their operands where the
// copies have put them: no warp moves a byte. P goes from the accumulators of one product to operand A of the next
// without leaving registers. All warpgroups do the same, one step after the other.
#include "kernels/flash_v3.cuh"
#include "kernels/flash_v3_rung.cuh"

namespace hbmscope::kernels {
namespace {

template <class T, class Tile, bool kCounted>
__global__ void __launch_bounds__(128 * Tile::kWarpgroups, 1)
    flash_v3a_kernel(const __grid_constant__ AttentionArgs a, const __grid_constant__ InputMaps maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char smem_bytes[];
  const Smem<Tile> smem(smem_bytes);
  const Work<Tile> work(a, blockIdx.x);
  ByteCounter<kCounted> counter;
  const auto copy_keys = [&](int n) {
    if (threadIdx.x != 0 || n >= work.kv_tiles) return;
    copy_k(a, maps, smem, work, n, n, counter);
    copy_v(a, maps, smem, work, n, n, counter);
  };
  if (threadIdx.x == 0) smem.init_barriers();
  __syncthreads();
  if (threadIdx.x == 0 && work.kv_tiles > 0) copy_all_queries(a, maps, smem, work, counter);
  copy_keys(0);
  copy_keys(1);

  Rows64<T, Tile> rows(smem, work, static_cast<int>(threadIdx.x) / 128);
  if (work.kv_tiles > 0) {
    wait_barrier(smem.q_full(rows.warpgroup), 0);
    rows.take_q();
  }
#pragma unroll 1
  for (int n = 0; n < work.kv_tiles; ++n) {
    smem.wait_k(n);
    rows.start_qk(smem.k_tile(n));
    wait_wgmma<0>();
    rows.softmax(a);
    smem.wait_v(n);
    rows.start_pv(smem.v_tile(n));
    wait_wgmma<0>();
    __syncthreads();  // nobody reads this step's tiles any more
    copy_keys(n + 2);
  }
  rows.store(a, Work<Tile>(a, blockIdx.x), counter);
  counter.flush(a.byte_counters);
#endif
}

}  // namespace

HBMSCOPE_FLASH_V3_RUNG(a, 128 * Tile::kWarpgroups)

}  // namespace hbmscope::kernels
