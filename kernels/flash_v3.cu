// Idea:    flash_v2 on Hopper: one thread brings the tiles, warpgroups multiply them from SMEM, softmax runs meanwhile
// Reads:   Q = B*H*Nq*d*e; K = B*H*ceil(Nq/Br)*Nk*d*e; V = B*H*ceil(Nq/Br)*Nk*dv*e
// Writes:  O = B*H*Nq*dv*e; LSE = B*H*Nq*4
// On chip: (Br*D + 4*Bc*D)*e
// Costs:   2*B*H*ceil(Nq/Br)*Br*ceil(Nk/Bc)*Bc*(D+D)
//
// After FlashAttention-3 (arXiv 2407.08608), Algorithm 2. A warpgroup of its own, with few registers, starts tensor
// copies; the others compute 64 query rows each. They start Q K^T of the next tile of keys and P V of this one
// together, and turn the next scores into P while P V still runs. D is head_dim rounded up to a compiled width: the
// copy engine fills with zeros what lies beyond the tensor, and the products run over them. Tiles that the mask hides
// whole are neither read nor computed. Needs a GPU of compute capability 9.0.
#include "kernels/flash_v3_tiles.hpp"
#include "kernels/hopper.cuh"
#include "kernels/softmax.cuh"
#include "kernels/tensor_map.hpp"

namespace hbmscope::kernels {
namespace {

struct InputMaps {
  CUtensorMap q, k, v;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// What lies where in SMEM. Tiles are panels of 64 columns; each warpgroup's 64 rows of Q are a tile of their own. A
/// tile of K or V has two barriers: full, when it has come, and free, when all warps that read it are done.
template <class Tile>
struct Smem {
  std::uint32_t q, k, v, barriers;
  __device__ explicit Smem(const void* bytes) {
    q = (smem_address(bytes) + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;
    k = q + Tile::kTileQ;
    v = k + Tile::kStages * Tile::kTileKv;
    barriers = v + Tile::kStages * Tile::kTileKv;
  }
  /// By number of the tile of keys, counted from the first that is visible: they take turns in the stages.
  __device__ std::uint32_t k_tile(int n) const { return k + n % Tile::kStages * Tile::kTileKv; }
  __device__ std::uint32_t v_tile(int n) const { return v + n % Tile::kStages * Tile::kTileKv; }
  __device__ std::uint32_t q_full() const { return barriers; }
  __device__ std::uint32_t k_full(int n) const { return barrier(0, n); }
  __device__ std::uint32_t v_full(int n) const { return barrier(1, n); }
  __device__ std::uint32_t k_free(int n) const { return barrier(2, n); }
  __device__ std::uint32_t v_free(int n) const { return barrier(3, n); }
  __device__ std::uint32_t barrier(int kind, int n) const {
    return barriers + 8 * (1 + kind * Tile::kStages + n % Tile::kStages);
  }
  /// Of the phase that ends when tile n has come, and of that which ends when its readers are done.
  __device__ static std::uint32_t parity(int n) { return n / Tile::kStages % 2; }

  __device__ void init_barriers() const {
    init_barrier(q_full(), 1);
    for (int n = 0; n < Tile::kStages; ++n) {
      init_barrier(k_full(n), 1);
      init_barrier(v_full(n), 1);
      init_barrier(k_free(n), 4 * Tile::kWarpgroups);
      init_barrier(v_free(n), 4 * Tile::kWarpgroups);
    }
    fence_barriers();
  }
};

/// A CTA's query tile, and the tiles of keys that it sees.
template <class Tile>
struct Work {
  int head, kv_head, batch, q_first, q_rows, kv_first, kv_tiles;
  KeyRange keys;
  __device__ explicit Work(const AttentionArgs& a) {
    const Place at = place_of_cta(a, static_cast<int>(ceil_div(a.seqlen_q, Tile::kBlockQ)));
    head = at.head, kv_head = at.head / (a.num_heads / a.num_kv_heads), batch = at.batch;
    q_first = at.tile * Tile::kBlockQ, q_rows = min(Tile::kBlockQ, a.seqlen_q - q_first);
    keys = visible_keys(a, q_first, q_first + q_rows - 1);
    kv_first = keys.first / Tile::kBlockKv * Tile::kBlockKv;
    kv_tiles = keys.empty() ? 0 : keys.last / Tile::kBlockKv - keys.first / Tile::kBlockKv + 1;
  }
};

/// The one thread that copies: Q, then K and V in the order in which they are multiplied, as far ahead as there is
/// room.
template <class Tile, bool kCounted>
__device__ void copy_tiles(const AttentionArgs& a, const InputMaps& maps, const Smem<Tile>& smem) {
  constexpr int kPanels = Tile::kHeadDim / kPanelWidth;
  const Work<Tile> work(a);
  ByteCounter<kCounted> counter;
  const auto load_q = [&] {  // HBM read: Q tile [Br, d]
    arrive_expecting(smem.q_full(), Tile::kTileQ);
    for (int n = 0; n < Tile::kWarpgroups * kPanels; ++n) {
      start_tensor_load(smem.q + n * (64 * kPanelWidth * 2), maps.q, n % kPanels * kPanelWidth,
                        work.q_first + n / kPanels * 64, work.head, work.batch, smem.q_full());
    }
    counter.read(Tensor::Q, work.q_rows * a.head_dim * 2);
  };
  const auto load = [&](Tensor tensor, const CUtensorMap& map, int n, int width, std::uint32_t to, std::uint32_t full,
                        std::uint32_t free) {
    const int c = work.kv_first + n * Tile::kBlockKv;
    wait_barrier(free, smem.parity(n) ^ 1);  // of the tile that was there before; at first there was none
    arrive_expecting(full, Tile::kTileKv);
    for (int x = 0; x < kPanels; ++x) {
      start_tensor_load(to + x * (Tile::kBlockKv * kPanelWidth * 2), map, x * kPanelWidth, c, work.kv_head, work.batch,
                        full);
    }
    counter.read(tensor, min(Tile::kBlockKv, a.seqlen_kv - c) * width * 2);
  };
  const auto load_k = [&](int n) {  // HBM read: K tile [Bc, d]
    load(Tensor::K, maps.k, n, a.head_dim, smem.k_tile(n), smem.k_full(n), smem.k_free(n));
  };
  const auto load_v = [&](int n) {  // HBM read: V tile [Bc, dv]
    load(Tensor::V, maps.v, n, a.head_dim_v, smem.v_tile(n), smem.v_full(n), smem.v_free(n));
  };
  if (work.kv_tiles > 0) {
    load_q();
    load_k(0);
    for (int n = 1; n < work.kv_tiles; ++n) {
      load_k(n);
      load_v(n - 1);
    }
    load_v(work.kv_tiles - 1);
  }
  counter.flush(a.byte_counters);
}

/// What a warpgroup holds in registers while it computes its 64 rows, and the steps.
template <class T, class Tile>
struct Rows64 {
  static constexpr int kD = Tile::kHeadDim, kBkv = Tile::kBlockKv;
  static constexpr std::uint32_t kPanelQ = 64 * kPanelWidth * 2, kPanelKv = kBkv * kPanelWidth * 2;  ///< bytes
  float s[1][kBkv / 8][4];
  std::uint32_t p[kBkv / 16][4];
  std::uint32_t q[Tile::kQInRegisters ? kD / 16 : 1][4];

  __device__ void load_q(std::uint32_t q_tile, int warp_row) {
    if constexpr (Tile::kQInRegisters) {
#pragma unroll
      for (int step = 0; step < kD / 16; ++step) {
        load_matrices(q[step], block_address<kPanelWidth>(q_tile + step / 4 * kPanelQ, warp_row, step % 4 * 16));
      }
    }
  }
  /// S = Q K^T, under way when it returns.
  __device__ void start_qk(std::uint32_t q_tile, std::uint32_t k_tile) {
    const std::uint64_t q_at = panel_descriptor(q_tile), k_at = panel_descriptor(k_tile);
    fence_wgmma();
#pragma unroll
    for (int step = 0; step < kD / 16; ++step) {
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
  /// O += P V, under way when it returns.
  __device__ void start_pv(float (&o)[1][kD / 8][4], std::uint32_t v_tile) {
    const std::uint64_t v_at = panel_descriptor(v_tile, kPanelKv);
    fence_wgmma();
#pragma unroll
    for (int step = 0; step < kBkv / 16; ++step) {
      start_wgmma<T, OperandB::by_depth>(o[0], p[step], further(v_at, step * (16 * kPanelWidth * 2)), 1);
    }
    commit_wgmma();
  }
  /// P = S, rounded: accumulators of two neighbouring 8-column blocks are operand A of the next product.
  __device__ void pack_p() {
#pragma unroll
    for (int step = 0; step < kBkv / 16; ++step) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {  // rows l/4 then l/4 + 8 of the first eight keys, then of the next
        const float(&block)[4] = s[0][2 * step + part / 2];
        p[step][part] = pack<T>(block[2 * (part % 2)], block[2 * (part % 2) + 1]);
      }
    }
  }
};

/// A warpgroup computes 64 rows of O.
template <class T, class Tile, bool kCounted>
__device__ __forceinline__ void compute_rows(const AttentionArgs& a, const Smem<Tile>& smem) {
  constexpr int kD = Tile::kHeadDim, kBkv = Tile::kBlockKv;
  const int thread = static_cast<int>(threadIdx.x) - 128, warpgroup = thread / 128, warp_row = thread % 128 / 32 * 16;
  const std::uint32_t q_tile = smem.q + warpgroup * (64 * kD * 2);
  const auto release = [&](std::uint32_t free) {
    if (lane_now() == 0) arrive(free);
  };

  RowState<1> row;  // l and m
  float o[1][kD / 8][4] = {};
  {
    const Work<Tile> work(a);
    const int q_first = work.q_first + 64 * warpgroup + warp_row, kv_first = work.kv_first, kv_tiles = work.kv_tiles,
              all_first = work.keys.all_first, all_last = work.keys.all_last;
    Rows64<T, Tile> rows;
    const auto mask_and_maximum = [&](int n) {
      const int c = kv_first + n * kBkv;
      if (c < all_first || c + kBkv - 1 > all_last) mask_scores<1, kBkv>(rows.s, a, q_first, c);
      return update_maximum(row, rows.s, a.scale);
    };
    if (kv_tiles > 0) {
      wait_barrier(smem.q_full(), 0);
      rows.load_q(q_tile, warp_row);
      wait_barrier(smem.k_full(0), 0);
      rows.start_qk(q_tile, smem.k_tile(0));
      wait_wgmma<0>();
      release(smem.k_free(0));
      mask_and_maximum(0);
      exponentiate(rows.s, row, a.scale);
      rows.pack_p();
#pragma unroll 1
      for (int n = 1; n < kv_tiles; ++n) {
        wait_barrier(smem.k_full(n), smem.parity(n));
        rows.start_qk(q_tile, smem.k_tile(n));
        wait_barrier(smem.v_full(n - 1), smem.parity(n - 1));
        rows.start_pv(o, smem.v_tile(n - 1));
        wait_wgmma<1>();  // the scores are there, P V still runs
        release(smem.k_free(n));
        const Rescale<1> by = mask_and_maximum(n);
        rescale_sums(row, by);
        exponentiate(rows.s, row, a.scale);
        wait_wgmma<0>();
        release(smem.v_free(n - 1));
        rows.pack_p();  // not before P V is done with the registers of P
        rescale_output(o, by);
      }
      wait_barrier(smem.v_full(kv_tiles - 1), smem.parity(kv_tiles - 1));
      rows.start_pv(o, smem.v_tile(kv_tiles - 1));
      wait_wgmma<0>();
    }
  }

  // HBM write: O tile [Br, dv], LSE [Br]
  const Work<Tile> work(a);
  const int q_first = work.q_first + 64 * warpgroup, rows = min(64, a.seqlen_q - q_first), dv = a.head_dim_v;
  ByteCounter<kCounted> counter;
  finish_rows(row, o);
  sync_named(1 + warpgroup, 128);  // the warpgroup's rows of Q are free: O leaves through them
  T* o_out = a.get<T>(Tensor::O) + head_offset(work.batch, work.head, a.num_heads, a.seqlen_q, dv);
  store_rows<T, 1, kD>(o_out + std::int64_t{q_first} * dv, o, q_tile, warp_row, rows, dv, Tensor::O, counter);
  float* lse = a.get<float>(Tensor::LSE) + head_offset(work.batch, work.head, a.num_heads, a.seqlen_q, 1);
  store_lse<1>(lse + q_first, row, warp_row, rows, counter);
  counter.flush(a.byte_counters);
}

#endif

template <class T, class Tile, bool kCounted>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    flash_v3_kernel(const __grid_constant__ AttentionArgs a, const __grid_constant__ InputMaps maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char smem_bytes[];
  const Smem<Tile> smem(smem_bytes);
  if (threadIdx.x == 0) smem.init_barriers();
  __syncthreads();
  if (threadIdx.x < 128) {
    shrink_registers<Tile::kCopyRegisters>();
    if (threadIdx.x == 0) copy_tiles<Tile, kCounted>(a, maps, smem);
  } else {
    grow_registers<Tile::kComputeRegisters>();
    compute_rows<T, Tile, kCounted>(a, smem);
  }
#endif
}

template <class T, class Tile>
void launch_tile(const Call& call) {
  const AttentionArgs& a = call.args;
  const auto map = [&](Tensor tensor, int heads, int rows, int width, int box_rows) {
    return panel_map({a.get<void>(tensor), call.dtype, a.batch, heads, rows, width, width}, box_rows);
  };
  const InputMaps maps{map(Tensor::Q, a.num_heads, a.seqlen_q, a.head_dim, 64),
                       map(Tensor::K, a.num_kv_heads, a.seqlen_kv, a.head_dim, Tile::kBlockKv),
                       map(Tensor::V, a.num_kv_heads, a.seqlen_kv, a.head_dim_v, Tile::kBlockKv)};
  const auto kernel = call.counted ? flash_v3_kernel<T, Tile, true> : flash_v3_kernel<T, Tile, false>;
  allow_smem(reinterpret_cast<const void*>(kernel), Tile::kSmem, "flash_v3");
  const std::int64_t ctas = ceil_div(a.seqlen_q, Tile::kBlockQ) * a.num_heads * a.batch;
  kernel<<<grid_of(ctas), Tile::kThreads, Tile::kSmem, call.stream>>>(a, maps);
  check_launch("flash_v3");
}

void launch(const Call& call) {
  with_flash_v3_tile(call.args.head_dim, call.args.head_dim_v, [&](auto tile) {
    using Tile = decltype(tile);
    call.dtype == Dtype::bf16 ? launch_tile<BFloat16, Tile>(call) : launch_tile<Half, Tile>(call);
  });
}

std::string unsupported(const AttentionShape& s) {
  if (s.dtype != Dtype::fp16 && s.dtype != Dtype::bf16) return "the tensor-core kernel takes fp16 and bf16";
  if (!on_hopper()) return "flash_v3 needs a Hopper GPU (compute capability 9.0); flash_v2 runs on this one";
  return unsupported_shape(s);
}

TilePlan plan(const AttentionShape& s, const TilePlan& wanted) {
  TilePlan p = wanted;
  with_flash_v3_tile(s.head_dim, s.head_dim_v, [&](auto tile) {
    using Tile = decltype(tile);
    take_block("flash_v3", "--block-q", p.block_q, Tile::kBlockQ);
    take_block("flash_v3", "--block-kv", p.block_kv, Tile::kBlockKv);
  });
  p.stages = 2;
  return p;
}

std::vector<Temporary> temporaries(const AttentionShape&, const TilePlan&) {
  return {};
}
std::vector<Stage> stages(const AttentionShape&, const TilePlan&) {
  return {{"fused", launch}};
}

}  // namespace

extern const Pipeline kPipeline_flash_v3{"flash_v3",  "flash_v3", "kernels/flash_v3.cu", unsupported, plan,
                                         temporaries, stages};

}  // namespace hbmscope::kernels
