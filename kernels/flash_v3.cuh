#pragma once
#include "kernels/flash_v3_tiles.hpp"
#include "kernels/hopper.cuh"
#include "kernels/softmax.cuh"
#include "kernels/tensor_map.hpp"

/// What the rungs of the Hopper kernel share (flash_v3a to flash_v3d, flash_v3): where tiles lie in SMEM, how they are
/// copied, and the steps on 64 query rows. A rung is what it does with them, and when.
namespace hbmscope::kernels {

struct InputMaps {
  CUtensorMap q, k, v;
};
template <class Tile>
InputMaps input_maps(const Call& call) {
  const AttentionArgs& a = call.args;
  const auto map = [&](Tensor tensor, int heads, int rows, int width, int box_rows) {
    return panel_map({a.get<void>(tensor), call.dtype, a.batch, heads, rows, width, width}, box_rows);
  };
  constexpr int kCopied = Tile::kBlockKv / Tile::kCluster;
  return {map(Tensor::Q, a.num_heads, a.seqlen_q, a.head_dim, 64),
          map(Tensor::K, a.num_kv_heads, a.seqlen_kv, a.head_dim, kCopied),
          map(Tensor::V, a.num_kv_heads, a.seqlen_kv, a.head_dim_v, kCopied)};
}
/// Query tiles of a head: whole clusters of them, the last tile of which may lie beyond the last query.
template <class Tile>
__host__ __device__ std::int64_t query_tiles_of_head(const AttentionArgs& a) {
  return (a.seqlen_q + Tile::kBlockQ * Tile::kCluster - 1) / (Tile::kBlockQ * Tile::kCluster) * Tile::kCluster;
}
/// Query tiles of all heads, as a grid has them.
template <class Tile>
unsigned query_tiles(const AttentionArgs& a) {
  return grid_of(query_tiles_of_head<Tile>(a) * a.num_heads * a.batch);
}

/// Fixes the tile of a plan; one that was asked for and is not compiled is an Error.
template <class Tile>
void take_tile(std::string_view pipeline, TilePlan& plan) {
  take_block(pipeline, "--block-q", plan.block_q, Tile::kBlockQ);
  take_block(pipeline, "--block-kv", plan.block_kv, Tile::kBlockKv);
  if (plan.cluster > 1) take_block(pipeline, "--cluster", plan.cluster, Tile::kCluster);
  plan.cluster = Tile::kCluster;
  plan.stages = Tile::kStages;
}

/// What the rungs take.
std::string unsupported_by_flash_v3(const AttentionShape& shape);
std::string unsupported_by_rung(const AttentionShape& shape);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// What lies where in SMEM. Tiles are panels of 64 columns; each warpgroup's 64 rows of Q are a tile of their own. Each
/// tile has two barriers: full, when it has come, and free, when all warps that read it are done.
template <class Tile>
struct Smem {
  std::uint32_t q, k, v, barriers;
  __device__ explicit Smem(const void* bytes) {
    q = (smem_address(bytes) + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;
    k = q + Tile::kTileQ;
    v = k + Tile::kStages * Tile::kTileKv;
    barriers = v + Tile::kStages * Tile::kTileKv;
  }
  /// By number of the tile of keys, counted from the first that this CTA reads: they take turns in the stages.
  __device__ std::uint32_t k_tile(unsigned n) const { return k + n % Tile::kStages * Tile::kTileKv; }
  __device__ std::uint32_t v_tile(unsigned n) const { return v + n % Tile::kStages * Tile::kTileKv; }
  __device__ std::uint32_t q_full() const { return barriers; }
  __device__ std::uint32_t q_free() const { return barriers + 8; }
  __device__ std::uint32_t k_full(unsigned n) const { return barrier(0, n); }
  __device__ std::uint32_t v_full(unsigned n) const { return barrier(1, n); }
  __device__ std::uint32_t k_free(unsigned n) const { return barrier(2, n); }
  __device__ std::uint32_t v_free(unsigned n) const { return barrier(3, n); }
  __device__ std::uint32_t barrier(unsigned kind, unsigned n) const {
    return barriers + 8 * (2 + kind * Tile::kStages + n % Tile::kStages);
  }
  /// Of the phase that ends when tile n has come, and of that which ends when its readers are done.
  __device__ static std::uint32_t parity(unsigned n) { return n / Tile::kStages % 2; }
  __device__ void wait_k(unsigned n) const { wait_barrier(k_full(n), parity(n)); }
  __device__ void wait_v(unsigned n) const { wait_barrier(v_full(n), parity(n)); }
  /// A word behind the barriers, for the number of the query tile whose turn it is.
  __device__ std::uint32_t place() const { return barriers + 8 * (2 + 4 * Tile::kStages); }

  __device__ void init_barriers() const {
    init_barrier(q_full(), 1);
    init_barrier(q_free(), 4 * Tile::kWarpgroups);
    for (unsigned n = 0; n < Tile::kStages; ++n) {
      init_barrier(k_full(n), 1);
      init_barrier(v_full(n), 1);
      init_barrier(k_free(n), 4 * Tile::kWarpgroups * Tile::kCluster);
      init_barrier(v_free(n), 4 * Tile::kWarpgroups * Tile::kCluster);
    }
    fence_barriers();
  }
};

/// Tells the copying thread that this warp is done with a tile.
__device__ inline void release(std::uint32_t free) {
  if (lane_now() == 0) arrive(free);
}
/// The same of a tile of keys, which all threads of the cluster that copy wait for.
template <class Tile>
__device__ inline void release_keys(std::uint32_t free) {
  if constexpr (Tile::kCluster == 1) {
    release(free);
  } else if (const unsigned lane = static_cast<unsigned>(lane_now()); lane < Tile::kCluster) {
    arrive_at(free, lane);
  }
}

/// A query tile, and the tiles of keys that it sees.
template <class Tile>
struct Work {
  int head, kv_head, batch, q_first, q_rows, kv_first, kv_tiles;
  KeyRange keys;
  __device__ Work(const AttentionArgs& a, unsigned place) {
    const Place at = place_of(a, static_cast<int>(query_tiles_of_head<Tile>(a)), place);
    head = at.head, kv_head = at.head / (a.num_heads / a.num_kv_heads), batch = at.batch;
    q_first = at.tile * Tile::kBlockQ, q_rows = max(0, min(Tile::kBlockQ, a.seqlen_q - q_first));
    keys = visible_keys(a, q_first, q_first + q_rows - 1);
    kv_first = keys.first / Tile::kBlockKv * Tile::kBlockKv;
    kv_tiles = keys.empty() ? 0 : keys.last / Tile::kBlockKv - keys.first / Tile::kBlockKv + 1;
  }
};

/// Starts the copy of a query tile. HBM read: Q tile [Br, d]
template <class Tile, class Counter>
__device__ void copy_q(const AttentionArgs& a, const InputMaps& maps, const Smem<Tile>& smem, const Work<Tile>& work,
                       Counter& counter) {
  constexpr int kPanels = Tile::kHeadDim / kPanelWidth;
  arrive_expecting(smem.q_full(), Tile::kTileQ);
#pragma unroll 1
  for (int n = 0; n < Tile::kWarpgroups * kPanels; ++n) {
    start_tensor_load(smem.q + n * (64 * kPanelWidth * 2), maps.q, n % kPanels * kPanelWidth,
                      work.q_first + n / kPanels * 64, work.head, work.batch, smem.q_full());
  }
  counter.read(Tensor::Q, work.q_rows * a.head_dim * 2);
}
/// Starts the copy of the query tile's nth tile of K or V to `to`.
template <class Tile, class Counter>
__device__ void copy_kv(Tensor tensor, const CUtensorMap& map, int width, const AttentionArgs& a,
                        const Work<Tile>& work, int n, std::uint32_t to, std::uint32_t full, Counter& counter) {
  constexpr int kCopied = Tile::kBlockKv / Tile::kCluster;  // rows: of a cluster, each CTA copies a part for all
  const int part = Tile::kCluster == 1 ? 0 : static_cast<int>(cluster_rank()) * kCopied;
  const int c = work.kv_first + n * Tile::kBlockKv + part;
  arrive_expecting(full, Tile::kTileKv);
#pragma unroll 1
  for (int x = 0; x < Tile::kHeadDim / kPanelWidth; ++x) {
    const std::uint32_t at = to + (x * Tile::kBlockKv + part) * (kPanelWidth * 2);
    if constexpr (Tile::kCluster == 1) {
      start_tensor_load(at, map, x * kPanelWidth, c, work.kv_head, work.batch, full);
    } else {
      start_tensor_multicast(at, map, x * kPanelWidth, c, work.kv_head, work.batch, full);
    }
  }
  counter.read(tensor, max(0, min(kCopied, a.seqlen_kv - c)) * width * 2);
}
/// HBM read: K tile [Bc, d]. `at` counts the tiles of keys of the CTA, `n` those of the query tile.
template <class Tile, class Counter>
__device__ void copy_k(const AttentionArgs& a, const InputMaps& maps, const Smem<Tile>& smem, const Work<Tile>& work,
                       int n, unsigned at, Counter& counter) {
  copy_kv(Tensor::K, maps.k, a.head_dim, a, work, n, smem.k_tile(at), smem.k_full(at), counter);
}
/// HBM read: V tile [Bc, dv]
template <class Tile, class Counter>
__device__ void copy_v(const AttentionArgs& a, const InputMaps& maps, const Smem<Tile>& smem, const Work<Tile>& work,
                       int n, unsigned at, Counter& counter) {
  copy_kv(Tensor::V, maps.v, a.head_dim_v, a, work, n, smem.v_tile(at), smem.v_full(at), counter);
}
/// All tiles of keys of a query tile, in the order in which they are multiplied and as far ahead as there is room.
template <class Tile, class Counter>
__device__ void copy_all_keys(const AttentionArgs& a, const InputMaps& maps, const Smem<Tile>& smem,
                              const Work<Tile>& work, unsigned first, Counter& counter) {
#pragma unroll 1
  for (int n = 0; n <= work.kv_tiles; ++n) {
    const unsigned at = first + n;
    if (n < work.kv_tiles) {
      wait_barrier(smem.k_free(at), smem.parity(at) ^ 1);  // of the tile that was there before; at first there was none
      copy_k(a, maps, smem, work, n, at, counter);
    }
    if (n > 0) {
      wait_barrier(smem.v_free(at - 1), smem.parity(at - 1) ^ 1);
      copy_v(a, maps, smem, work, n - 1, at - 1, counter);
    }
  }
}

/// 64 rows of O that a warpgroup computes, and the steps. They live in registers: fragments as softmax.cuh has them.
template <class T, class Tile>
struct Rows64 {
  static constexpr int kD = Tile::kHeadDim, kBkv = Tile::kBlockKv;
  static constexpr std::uint32_t kPanelQ = 64 * kPanelWidth * 2, kPanelKv = kBkv * kPanelWidth * 2;  ///< bytes
  RowState<1> row;                                                                                   ///< l and m
  float o[1][kD / 8][4] = {};
  float s[1][kBkv / 8][4];
  std::uint32_t p[kBkv / 16][4];
  std::uint32_t q[Tile::kQInRegisters ? kD / 16 : 1][4];
  std::uint32_t q_tile;     ///< the warpgroup's
  int warpgroup, warp_row;  ///< of those that compute; the warp's first row of the 64
  int q_first, kv_first, all_first, all_last;

  __device__ Rows64(const Smem<Tile>& smem, const Work<Tile>& work, int thread)
      : warpgroup(thread / 128),
        warp_row(thread % 128 / 32 * 16),
        q_first(work.q_first + 64 * warpgroup + warp_row),
        kv_first(work.kv_first),
        all_first(work.keys.all_first),
        all_last(work.keys.all_last) {
    q_tile = smem.q + warpgroup * (64 * kD * 2);
  }
  /// To registers, where the tile says so.
  __device__ void take_q() {
    if constexpr (Tile::kQInRegisters) {
#pragma unroll
      for (int step = 0; step < kD / 16; ++step) {
        load_matrices(q[step], block_address<kPanelWidth>(q_tile + step / 4 * kPanelQ, warp_row, step % 4 * 16));
      }
    }
  }
  /// S = Q K^T, under way when it returns.
  __device__ void start_qk(std::uint32_t k_tile) {
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
  __device__ void start_pv(std::uint32_t v_tile) {
    const std::uint64_t v_at = panel_descriptor(v_tile, kPanelKv);
    fence_wgmma();
#pragma unroll
    for (int step = 0; step < kBkv / 16; ++step) {
      start_wgmma<T, OperandB::by_depth>(o[0], p[step], further(v_at, step * (16 * kPanelWidth * 2)), 1);
    }
    commit_wgmma();
  }
  /// Hides what the mask hides in the nth tile of keys; m = max(m, row maximum).
  __device__ Rescale<1> mask_and_maximum(const AttentionArgs& a, int n) {
    const int c = kv_first + n * kBkv;
    if (c < all_first || c + kBkv - 1 > all_last) mask_scores<1, kBkv>(s, a, q_first, c);
    return update_maximum(row, s, a.scale);
  }
  /// S = exp(S - m), and l to go with it.
  __device__ void exponentiate_scores(const AttentionArgs& a, const Rescale<1>& by) {
    rescale_sums(row, by);
    exponentiate(s, row, a.scale);
  }
  /// P = S, rounded: accumulators of two neighbouring 8-column blocks are operand A of the next product. O for the new
  /// maximum.
  __device__ void take_p(const Rescale<1>& by) {
#pragma unroll
    for (int step = 0; step < kBkv / 16; ++step) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {  // rows l/4 then l/4 + 8 of the first eight keys, then of the next
        const float(&block)[4] = s[0][2 * step + part / 2];
        p[step][part] = pack<T>(block[2 * (part % 2)], block[2 * (part % 2) + 1]);
      }
    }
    rescale_output(o, by);
  }
  __device__ void softmax(const AttentionArgs& a, int n) {
    const Rescale<1> by = mask_and_maximum(a, n);
    exponentiate_scores(a, by);
    take_p(by);
  }
  /// HBM write: O tile [Br, dv], LSE [Br]
  template <class Counter>
  __device__ void store(const AttentionArgs& a, unsigned place, Counter& counter) {
    const Work<Tile> work(a, place);
    const int first = work.q_first + 64 * warpgroup, rows = min(64, a.seqlen_q - first), dv = a.head_dim_v;
    finish_rows(row, o);
    T* o_out = a.get<T>(Tensor::O) + head_offset(work.batch, work.head, a.num_heads, a.seqlen_q, dv);
    store_rows_by_quads(o_out + std::int64_t{first} * dv, o[0], warp_row, rows, dv, Tensor::O, counter);
    float* lse = a.get<float>(Tensor::LSE) + head_offset(work.batch, work.head, a.num_heads, a.seqlen_q, 1);
    store_lse<1>(lse + first, row, warp_row, rows, counter);
  }
};

#endif

}  // namespace hbmscope::kernels
