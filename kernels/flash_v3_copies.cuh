#pragma once
#include "kernels/flash_v3_tiles.hpp"
#include "kernels/hopper.cuh"
#include "kernels/softmax.cuh"
#include "kernels/tensor_map.hpp"

/// What the rungs of the Hopper kernel share (flash_v3a to flash_v3e, flash_v3): where tiles lie in SMEM and how they
/// are copied. What is computed from them is in flash_v3.cuh.
namespace hbmscope::kernels {

struct InputMaps {
  CUtensorMap q, k, v;
};
template <class Tile>
InputMaps input_maps(const Call& call) {
  const AttentionArgs& a = call.args;
  const auto map = [&](Tensor tensor, int heads, int rows, int width, int box_rows) {
    const int words = width * Tile::kElementBytes / 2;  // two elements of fp8 travel as one of 16 bits
    return panel_map({a.get<void>(tensor), call.dtype, a.batch, heads, rows, words, words}, box_rows);
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
  take_block(pipeline, "--cluster", plan.cluster, Tile::kCluster);
  plan.stages = Tile::kStages;
}

/// What the rungs take.
std::string unsupported_by_flash_v3(const AttentionShape& shape);
std::string unsupported_by_rung(const AttentionShape& shape);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <class Tile>
struct Work;

/// What lies where in SMEM. Tiles are panels of 64 columns, of fp8 128; each warpgroup's 64 rows of Q are a tile of
/// their own. Each tile has two barriers: full, when it has come, and free, when all that read it are done: of Q each
/// thread says so, of K and V each warp. So has the word in which CTAs of a cluster are told what was drawn for them.
template <class Tile>
struct Smem {
  std::uint32_t q, k, v, barriers;
  static constexpr unsigned kBarriers = 2 * Tile::kWarpgroups + 4 * Tile::kStages + 2;
  __device__ explicit Smem(const void* bytes) {
    q = (smem_address(bytes) + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;
    k = q + Tile::kTileQ;
    v = k + Tile::kStages * Tile::kTileKv;
    barriers = v + Tile::kStages * Tile::kTileKv;
  }
  /// By number of the tile of keys, counted from the first that this CTA reads: they take turns in the stages.
  __device__ std::uint32_t k_tile(unsigned n) const { return k + n % Tile::kStages * Tile::kTileKv; }
  __device__ std::uint32_t v_tile(unsigned n) const { return v + n % Tile::kStages * Tile::kTileKv; }
  __device__ std::uint32_t q_full(int warpgroup) const { return barriers + 16 * warpgroup; }
  __device__ std::uint32_t q_free(int warpgroup) const { return barriers + 16 * warpgroup + 8; }
  __device__ std::uint32_t k_full(unsigned n) const { return barrier(0, n); }
  __device__ std::uint32_t v_full(unsigned n) const { return barrier(1, n); }
  __device__ std::uint32_t k_free(unsigned n) const { return barrier(2, n); }
  __device__ std::uint32_t v_free(unsigned n) const { return barrier(3, n); }
  __device__ std::uint32_t barrier(unsigned kind, unsigned n) const {
    return barriers + 8 * (2 * Tile::kWarpgroups + kind * Tile::kStages + n % Tile::kStages);
  }
  /// Of the phase that ends when tile n has come, and of that which ends when its readers are done.
  __device__ static std::uint32_t parity(unsigned n) { return n / Tile::kStages % 2; }
  __device__ void wait_k(unsigned n) const { wait_barrier(k_full(n), parity(n)); }
  __device__ void wait_v(unsigned n) const { wait_barrier(v_full(n), parity(n)); }
  /// For the end of the tile that was there before; at first there was none.
  __device__ void wait_k_free(unsigned n) const { wait_barrier(k_free(n), parity(n) ^ 1); }
  __device__ void wait_v_free(unsigned n) const { wait_barrier(v_free(n), parity(n) ^ 1); }
  /// What the CTA's nth query tile is, written by the thread that copies, which may then be two tiles ahead of who
  /// still stores rows: so there are three places.
  __device__ Work<Tile>& work(unsigned n) const {
    static_assert(8 * kBarriers + 3 * sizeof(Work<Tile>) + 4 <= Tile::kBarrierBytes);
    const std::uint32_t at = barriers + 8 * kBarriers + n % 3 * static_cast<std::uint32_t>(sizeof(Work<Tile>));
    return *static_cast<Work<Tile>*>(__cvta_shared_to_generic(at));
  }
  __device__ std::uint32_t draw() const {
    return barriers + 8 * kBarriers + 3 * static_cast<std::uint32_t>(sizeof(Work<Tile>));
  }
  __device__ std::uint32_t draw_full() const { return barriers + 8 * (kBarriers - 2); }
  __device__ std::uint32_t draw_free() const { return barriers + 8 * (kBarriers - 1); }  ///< of the first CTA, for all
  /// Tells the cluster what was drawn after its nth query tiles.
  __device__ void send_draw(unsigned n, unsigned draw_of_all) const {
    wait_barrier(draw_free(), n % 2 ^ 1);
    for (unsigned to = 0; to < Tile::kCluster; ++to) send(draw(), to, draw_of_all, draw_full());
  }
  __device__ unsigned receive_draw(unsigned n) const {
    arrive_expecting(draw_full(), 4);
    wait_barrier(draw_full(), n % 2);
    const unsigned received = *static_cast<volatile unsigned*>(__cvta_shared_to_generic(draw()));
    arrive_at(draw_free(), 0);
    return received;
  }

  __device__ void init_barriers() const {
    for (int warpgroup = 0; warpgroup < Tile::kWarpgroups; ++warpgroup) {
      init_barrier(q_full(warpgroup), 1);
      // Each thread reads work(n), and Q where it stays in registers.
      init_barrier(q_free(warpgroup), 128 + (warpgroup == 0 ? Tile::kOtherReaders : 0));
    }
    for (unsigned n = 0; n < Tile::kStages; ++n) {
      init_barrier(k_full(n), 1);
      init_barrier(v_full(n), 1);
      init_barrier(k_free(n), 4 * Tile::kWarpgroups * Tile::kCluster);
      init_barrier(v_free(n), Tile::kValueReaders * Tile::kCluster);
    }
    init_barrier(draw_full(), 1);
    init_barrier(draw_free(), Tile::kCluster);
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

/// A query tile, and the tiles of keys that it sees or another of its cluster does.
template <class Tile>
struct Work {
  /// In place of a query tile where none is left.
  static constexpr int kNone = -1;
  int head, kv_head, batch, q_first, kv_first, kv_tiles;
  bool blind;  ///< it sees no key: its queries are not copied, and no score counts, whatever SMEM has in their place
  KeyRange keys;
  __device__ Work(const AttentionArgs& a, unsigned place) {
    constexpr int kRows = Tile::kCluster * Tile::kBlockQ;
    const Place at =
        place_of(a, static_cast<int>(query_tiles_of_head<Tile>(a)) / Tile::kCluster, place / Tile::kCluster);
    head = at.head, kv_head = at.head / (a.num_heads / a.num_kv_heads), batch = at.batch;
    q_first = at.tile * kRows + static_cast<int>(place % Tile::kCluster) * Tile::kBlockQ;
    keys = visible_keys(a, at.tile * kRows, min((at.tile + 1) * kRows, a.seqlen_q) - 1);
    kv_first = keys.first / Tile::kBlockKv * Tile::kBlockKv;
    kv_tiles = keys.empty() ? 0 : keys.last / Tile::kBlockKv - keys.first / Tile::kBlockKv + 1;
    const int q_last = min(q_first + Tile::kBlockQ, a.seqlen_q) - 1;
    blind = Tile::kCluster == 1 ? kv_tiles == 0 : q_first <= q_last && visible_keys(a, q_first, q_last).empty();
  }
};

/// Panels, of 128 bytes a row, that a tile consists of.
template <class Tile>
constexpr int kPanels = Tile::kHeadDim * Tile::kElementBytes / (2 * kPanelWidth);

/// Starts the copy of a warpgroup's rows of a query tile. HBM read: Q tile [Br, d]
template <class Tile, class Counter>
__device__ void copy_q(const AttentionArgs& a, const InputMaps& maps, const Smem<Tile>& smem, const Work<Tile>& work,
                       int warpgroup, Counter& counter) {
  constexpr std::uint32_t kPanel = 64 * kPanelWidth * 2, kRows = 64 * Tile::kHeadDim * Tile::kElementBytes;
  const int q = work.q_first + 64 * warpgroup;
  arrive_expecting(smem.q_full(warpgroup), kRows);
#pragma unroll 1
  for (int x = 0; x < kPanels<Tile>; ++x) {
    start_tensor_load(smem.q + warpgroup * kRows + x * kPanel, maps.q, x * kPanelWidth, q, work.head, work.batch,
                      smem.q_full(warpgroup));
  }
  counter.read(Tensor::Q, max(0, min(64, a.seqlen_q - q)) * a.head_dim * Tile::kElementBytes);
}
/// And of all its warpgroups.
template <class Tile, class Counter>
__device__ void copy_all_queries(const AttentionArgs& a, const InputMaps& maps, const Smem<Tile>& smem,
                                 const Work<Tile>& work, Counter& counter) {
#pragma unroll 1
  for (int warpgroup = 0; warpgroup < Tile::kWarpgroups; ++warpgroup) {
    copy_q(a, maps, smem, work, warpgroup, counter);
  }
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
  for (int x = 0; x < kPanels<Tile>; ++x) {
    const std::uint32_t at = to + (x * Tile::kBlockKv + part) * (kPanelWidth * 2);
    if constexpr (Tile::kCluster == 1) {
      start_tensor_load(at, map, x * kPanelWidth, c, work.kv_head, work.batch, full);
    } else {
      start_tensor_multicast(at, map, x * kPanelWidth, c, work.kv_head, work.batch, full);
    }
  }
  counter.read(tensor, max(0, min(kCopied, a.seqlen_kv - c)) * width * Tile::kElementBytes);
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
      smem.wait_k_free(at);
      copy_k(a, maps, smem, work, n, at, counter);
    }
    if (n > 0) {
      smem.wait_v_free(at - 1);
      copy_v(a, maps, smem, work, n - 1, at - 1, counter);
    }
  }
}

#endif

}  // namespace hbmscope::kernels
