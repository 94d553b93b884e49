// Idea:    flash_v3e with CTAs that stay and draw query tiles: the first copies of the next run while one is finished
// Reads:   Q = B*H*Nq*d*e; K = B*H*ceil(Nq/(C*Br))*Nk*d*e; V = B*H*ceil(Nq/(C*Br))*Nk*dv*e
// Writes:  O = B*H*Nq*dv*e; LSE = B*H*Nq*4
// On chip: (Br*D + 2*S*Bc*D)*e + T*ceil(Bc/128)*128*D
// Costs:   2*B*H*ceil(Nq/(C*Br))*C*Br*ceil(Nk/Bc)*Bc*(D+D)
//
// Top rung of the Hopper kernel, after FlashAttention-3 (arXiv 2407.08608). A warpgroup of its own, with few registers,
// starts tensor copies; the others compute 64 query rows each. There are as many CTAs as SMs. C of them are a cluster:
// two where heads are long, wider than 64, of 16 bits and nothing is masked, else one. Each copies its part of a tile
// of keys into the SMEM of all. D is head_dim rounded up to a compiled width: the copy engine fills with zeros what
// lies beyond the tensor, and the products run over them. Tiles that the mask hides whole are neither read nor
// computed. S tiles each of K and V lie on chip, of fp8 (flash_v3_fp8.cuh) T tiles of V turned round besides. Needs a
// GPU of compute capability 9.0.
#include <algorithm>

#include "kernels/flash_v3.cuh"
#include "kernels/flash_v3_fp8.cuh"
#include "model/plan_choice.hpp"

namespace hbmscope::kernels {
namespace {

/// The query tiles of a launch, in the order of the grid. A CTA begins with that of its own number and then draws the
/// next that nobody has: some take longer than others, and some SMs have a slower clock. Of a cluster the first CTA
/// draws for all.
struct QueryTiles {
  unsigned count;
  unsigned* drawn;  ///< beyond the first of each cluster; 0 at the start of a launch, and again at its end
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// After the CTA's nth query tile. Takes a while, which next_tile waits for, or of a cluster its first CTA here.
template <class Tile>
__device__ unsigned draw_tile(QueryTiles tiles, const Smem<Tile>& smem, unsigned n) {
  if constexpr (!Tile::kStays) return 0;
  if (Tile::kCluster > 1 && cluster_rank() > 0) return 0;
  const unsigned draw = atomicAdd(tiles.drawn, 1);
  if constexpr (Tile::kCluster > 1) smem.send_draw(n, draw);
  return draw;
}
template <class Tile>
__device__ unsigned next_tile(QueryTiles tiles, const Smem<Tile>& smem, unsigned n, unsigned draw) {
  if constexpr (!Tile::kStays) return tiles.count;
  if constexpr (Tile::kCluster > 1) draw = smem.receive_draw(n);
  // Each cluster draws in vain once: there are as many draws as query tiles of clusters.
  if (draw == tiles.count / Tile::kCluster - 1) *tiles.drawn = 0;
  return draw * Tile::kCluster + gridDim.x + blockIdx.x % Tile::kCluster;
}

/// To each warpgroup its rows of the nth query tile, or word that there is nothing to copy.
template <class Tile, class Counter>
__device__ void copy_queries(const AttentionArgs& a, const InputMaps& maps, const Smem<Tile>& smem,
                             const Work<Tile>& work, unsigned n, Counter& counter) {
#pragma unroll 1
  for (int warpgroup = 0; warpgroup < Tile::kWarpgroups; ++warpgroup) {
    wait_barrier(smem.q_free(warpgroup), n % 2 ^ 1);
    if (work.kv_tiles == Work<Tile>::kNone || work.blind) {
      arrive(smem.q_full(warpgroup));
    } else {
      copy_q(a, maps, smem, work, warpgroup, counter);
    }
  }
}

/// The thread that copies. It does not stop at the end of a query tile: the next one finds its first tiles there.
template <class Tile, bool kCounted>
__device__ void copy_tiles(const AttentionArgs& a, const InputMaps& maps, QueryTiles tiles, const Smem<Tile>& smem) {
  // V is wanted a step after K. Of fp8 it has to be turned round before.
  constexpr int kBehind = Tile::kElementBytes == 2 ? 1 : 0;
  ByteCounter<kCounted> counter;
  unsigned place = blockIdx.x, kv_count = 0;  // of tiles so far
#pragma unroll 1
  for (unsigned q_count = 0;; ++q_count) {
    Work<Tile>& work = smem.work(q_count);
    if (place >= tiles.count) {
      work.kv_tiles = Work<Tile>::kNone;
      copy_queries(a, maps, smem, work, q_count, counter);
      break;
    }
    work = Work<Tile>(a, place);
    const int kv_tiles = work.kv_tiles;
    unsigned draw = 0;
#pragma unroll 1
    for (int n = 0; n <= kv_tiles; ++n) {
      const unsigned at = kv_count + n;
      if (n < kv_tiles) {
        smem.wait_k_free(at);
        copy_k(a, maps, smem, work, n, at, counter);
      }
      if (n == 0) copy_queries(a, maps, smem, work, q_count, counter);  // room for them comes after room for keys
      // Not before the last copy of keys has begun: who draws early keeps a tile from who is idle.
      if (n + 1 == max(1, kv_tiles)) draw = draw_tile(tiles, smem, q_count);
      if (n >= kBehind && n - kBehind < kv_tiles) {
        smem.wait_v_free(at - kBehind);
        copy_v(a, maps, smem, work, n - kBehind, at - kBehind, counter);
      }
    }
    kv_count += kv_tiles;
    place = next_tile(tiles, smem, q_count, draw);
  }
  counter.flush(a.byte_counters);
}

/// Warpgroups take turns at the tensor cores, where `kOn`.
template <int kWarpgroups, bool kOn>
struct Turns {
  int warpgroup = static_cast<int>(threadIdx.x) / 128 - 1;
  __device__ Turns() {
    if (kOn && warpgroup == kWarpgroups - 1) hand_on();  // the first begins
  }
  __device__ int barrier_of(int who) const { return 1 + who % kWarpgroups; }
  __device__ void take() const {
    if constexpr (kOn) sync_named(barrier_of(warpgroup), 256);
  }
  __device__ void hand_on() const {
    if constexpr (kOn) arrive_named(barrier_of(warpgroup + 1), 256);
  }
  __device__ void end() const {
    if (warpgroup == 0) take();  // what the last one handed on
  }
};

/// A warpgroup computes 64 rows of O, of one query tile after the other.
template <class T, class Tile, bool kCounted>
__device__ __forceinline__ void compute_rows(const AttentionArgs& a, const SmemOf<Tile>& smem) {
  ByteCounter<kCounted> counter;
  unsigned kv_count = 0;  // of tiles so far
  const auto this_warpgroup = [] { return thread_now() / 128 - 1; };
  const auto release_q = [&] { arrive(smem.q_free(this_warpgroup())); };
  const Turns<Tile::kWarpgroups, Tile::kInTurn == InTurn::first_scores> first_scores;
  const Turns<Tile::kWarpgroups, Tile::kInTurn == InTurn::products> products;
#pragma unroll 1
  for (unsigned q_count = 0;; ++q_count) {
    wait_barrier(smem.q_full(this_warpgroup()), q_count % 2);
    const int kv_tiles = smem.work(q_count).kv_tiles;
    if (kv_tiles == Work<Tile>::kNone) break;
    Rows64<T, Tile> rows(smem, smem.work(q_count), this_warpgroup());
    if (kv_tiles > 0) {
      rows.take_q();
      smem.wait_k(kv_count);
      first_scores.take();
      rows.start_qk(smem.k_tile(kv_count));
      wait_wgmma<0>();
      first_scores.hand_on();
      release_keys<Tile>(smem.k_free(kv_count));
      if (Tile::kQInRegisters || kv_tiles == 1) release_q();
      rows.softmax(a);
      if (kv_tiles > 1) smem.wait_k(kv_count + 1);
#pragma unroll 1
      for (int n = 1; n < kv_tiles; ++n) {
        const unsigned at = kv_count + n;  // counting on in kv_count, addresses leave the warp's common registers
        products.take();
        rows.start_qk(smem.k_tile(at));
        smem.wait_v(at - 1);
        rows.start_pv(smem.v_tile(at - 1));
        products.hand_on();
        wait_wgmma<1>();  // the scores are there, P V still runs
        release_keys<Tile>(smem.k_free(at));
        rows.mask(a);
        // The keys of the next step are waited for here and not where they are needed: the compiler would move the wait
        // that follows up to the one above. It moves none across a loop.
        if (n + 1 < kv_tiles) {
          smem.wait_k(at + 1);
        } else if (!Tile::kQInRegisters) {
          release_q();
        }
        wait_wgmma<0>();
        release_keys<Tile>(smem.v_free(at - 1));
        rows.softmax_by_old_maximum(a);  // not before P V is done with the registers of P
      }
      kv_count += kv_tiles;
      smem.wait_v(kv_count - 1);
      rows.start_pv(smem.v_tile(kv_count - 1));
      wait_wgmma<0>();
      release_keys<Tile>(smem.v_free(kv_count - 1));
    } else {
      release_q();
    }
    rows.store(a, smem.work(q_count), counter);
  }
  first_scores.end();
  products.end();
  counter.flush(a.byte_counters);
}

#endif

template <class T, class Tile, bool kCounted>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    flash_v3_kernel(const __grid_constant__ AttentionArgs a, const __grid_constant__ InputMaps maps,
                    const QueryTiles tiles) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char smem_bytes[];
  const SmemOf<Tile> smem(smem_bytes);
  if (threadIdx.x == 0) smem.init_barriers();
  if constexpr (Tile::kCluster > 1) {
    sync_cluster();
  } else {
    __syncthreads();
  }
  if (threadIdx.x < 128) {
    shrink_registers<Tile::kCopyRegisters>();
    if (threadIdx.x == 0) copy_tiles<Tile, kCounted>(a, maps, tiles, smem);
    if constexpr (Tile::kElementBytes == 1) {
      if (threadIdx.x >= 32) turn_values<Tile>(smem, static_cast<int>(threadIdx.x) / 32 - 1);
    }
  } else {
    grow_registers<Tile::kComputeRegisters>();
    compute_rows<T, Tile, kCounted>(a, smem);
  }
  if constexpr (Tile::kCluster > 1) sync_cluster();  // a neighbour may still arrive at this CTA's barriers
#endif
}

template <class T, class Tile>
void launch_tile(const Call& call) {
  const QueryTiles tiles{query_tiles<Tile>(call.args), draw_counter("flash_v3")};
  const auto kernel = call.counted ? flash_v3_kernel<T, Tile, true> : flash_v3_kernel<T, Tile, false>;
  allow_smem(call, reinterpret_cast<const void*>(kernel), Tile::kSmem, "flash_v3");
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {Tile::kCluster, 1, 1};
  const std::int64_t at_once = num_sms() / Tile::kCluster * Tile::kCluster;
  cudaLaunchConfig_t config{};
  config.gridDim = grid_of(Tile::kStays ? std::min<std::int64_t>(tiles.count, at_once) : tiles.count);
  config.blockDim = Tile::kThreads;
  config.dynamicSmemBytes = Tile::kSmem;
  config.stream = call.stream;
  config.attrs = &cluster;
  config.numAttrs = Tile::kCluster > 1 ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, call.args, input_maps<Tile>(call), tiles);
  check_launch("flash_v3");
}

}  // namespace
}  // namespace hbmscope::kernels

#ifdef HBMSCOPE_CANDIDATE  // compiled once more, as one of the choices that `hbmscope gpu tiles` times
#include "kernels/flash_v3_candidate.cuh"
#else

namespace hbmscope::kernels {
namespace {

void launch(const Call& call) {
  if (call.dtype == Dtype::fp8) {
    return with_flash_v3_fp8_tile(call.args.head_dim, call.args.head_dim_v,
                                  [&](auto tile) { launch_tile<Fp8, decltype(tile)>(call); });
  }
  with_flash_v3_tile(call.args.head_dim, call.args.head_dim_v, call.plan, [&](auto tile) {
    using Tile = decltype(tile);
    call.dtype == Dtype::bf16 ? launch_tile<BFloat16, Tile>(call) : launch_tile<Half, Tile>(call);
  });
}

std::vector<Temporary> temporaries(const AttentionShape&, const TilePlan&) {
  return {};
}
std::vector<Stage> stages(const AttentionShape&, const TilePlan&) {
  return {{"fused", launch}};
}

TilePlan plan(const AttentionShape& s, const TilePlan& wanted) {
  TilePlan p = wanted;
  const QueryTile fastest = flash_v3_tile(s, wanted);
  if (p.block_q == 0) p.block_q = fastest.block_q;
  if (p.block_kv == 0) p.block_kv = fastest.block_kv;
  p.cluster = flash_v3_cluster(s, p);
  const auto take = [&](auto tile) { take_tile<decltype(tile)>("flash_v3", p); };
  if (s.dtype == Dtype::fp8) {
    with_flash_v3_fp8_tile(s.head_dim, s.head_dim_v, take);
    return p;
  }
  with_flash_v3_tile(s.head_dim, s.head_dim_v, p, take);
  return p;
}

}  // namespace

std::string unsupported_by_flash_v3(const AttentionShape& s) {
  if (s.dtype == Dtype::fp32) return "the tensor-core kernel takes fp16, bf16 and fp8";
  if (!on_hopper()) {
    return std::string("flash_v3 needs a Hopper GPU (compute capability 9.0)") +
           (s.dtype == Dtype::fp8 ? ", and no other kernel takes fp8" : "; flash_v2 runs on this one");
  }
  return unsupported_shape(s);
}
std::string unsupported_by_rung(const AttentionShape& s) {
  if (s.dtype != Dtype::bf16) return "the rungs below flash_v3 are compiled for bf16";
  return unsupported_by_flash_v3(s);
}

extern const Pipeline kPipeline_flash_v3{
    "flash_v3", "flash_v3", "kernels/flash_v3.cu", unsupported_by_flash_v3, plan, temporaries, stages};

}  // namespace hbmscope::kernels
#endif
