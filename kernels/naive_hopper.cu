// Idea:    both products of naive on Hopper: CTAs stay and draw tiles, one warp copies, two warpgroups multiply in turn
// Reads:   qk: Q = B*H*ceil(Nk/Bc)*Nq*d*e; qk: K = B*H*ceil(Nq/Br)*Nk*d*e;
//          pv: P = B*H*ceil(dv/Bc)*Nq*Nk*e; pv: V = B*H*ceil(Nq/Br)*Nk*dv*e
// Writes:  qk: S = B*H*Nq*Nk*e; pv: O = B*H*Nq*dv*e
// On chip: 5*(Br+Bc)*64*e + 2*Br*Bc*e
// Costs:   2*B*H*ceil(Nq/Br)*Br*(ceil(Nk/Bc)*Bc*ceil(d/64)*64 + ceil(Nk/64)*64*ceil(dv/64)*64)
//
// The tiles, their order and their bytes are those of naive.cu, which says what S and its padding are. A tile of S
// takes little to multiply and much to store: while one warpgroup rounds its tile and stores it, the other multiplies
// the next, whose operands the copying warp has fetched meanwhile. Tiles are drawn, not dealt: SMs do not keep pace,
// and CTAs that drift apart no longer find in L2 what they share. Where O is two tiles wide, two CTAs make them
// abreast, as a cluster that draws both: what of P one of them fetches, the other finds in L2 (docs/kernels.md).
#include <algorithm>

#include "kernels/gemm_tile.cuh"
#include "kernels/gemm_wgmma.cuh"
#include "kernels/naive.hpp"
#include "kernels/tensor_map.hpp"
#include "kernels/tile.cuh"

namespace hbmscope::kernels {
namespace {

constexpr int kBr = 128, kDepth = 64;   // rows of a tile; columns of A and rows of B in a slice
constexpr int kThreads = 3 * 128;       // a warpgroup that copies and two that multiply
constexpr int kTurn = 1, kStaging = 3;  // named barriers, one of each for each of the two
constexpr int kDrawAhead = 16;          // slices before the end of a tile the next is drawn, which takes a while

/// C = A B for both; `kColumns` of C make a tile, and `kAbreast` CTAs a row of tiles. extent() is what of them there
/// is.
struct Extent {
  int rows, columns, depth;
};
struct ScoreProduct {  // S = Q K^T
  static constexpr Tensor kA = Tensor::Q, kB = Tensor::K, kC = Tensor::S;
  static constexpr OperandB kLayout = OperandB::by_column;
  static constexpr Reuse kReuseOfA = Reuse::soon;
  static constexpr int kColumns = 128, kAbreast = 1;
  __host__ __device__ static Extent extent(const AttentionArgs& a) { return {a.seqlen_q, a.seqlen_kv, a.head_dim}; }
  __device__ static TilePlace tile(const AttentionArgs& a, unsigned number) {
    return score_tile<2>(a, number, kBr, kColumns);
  }
};
template <int kColumnsOfTile, int kTiles>
struct OutputProduct {  // O = P V
  static constexpr Tensor kA = Tensor::P, kB = Tensor::V, kC = Tensor::O;
  static constexpr OperandB kLayout = OperandB::by_depth;
  static constexpr Reuse kReuseOfA = Reuse::none;
  static constexpr int kColumns = kColumnsOfTile, kAbreast = kTiles;
  __host__ __device__ static Extent extent(const AttentionArgs& a) { return {a.seqlen_q, a.head_dim_v, a.seqlen_kv}; }
  __device__ static TilePlace tile(const AttentionArgs& a, unsigned number) {
    return output_tile(a, number, kBr, kColumns);
  }
};

/// What lies where in SMEM: slices of both operands, which take turns in kStages places, and a tile of C of each
/// warpgroup on its way out. All are panels of 64 columns.
template <class Product>
struct ProductSmem {
  static constexpr unsigned kStages = 5;
  static constexpr std::uint32_t kSliceA = kBr * kDepth * 2, kSliceB = Product::kColumns * kDepth * 2;  // bytes
  static constexpr std::uint32_t kSlice = kSliceA + kSliceB, kTileC = kBr * Product::kColumns * 2;
  static constexpr std::uint32_t kBytes = kStages * kSlice + 2 * kTileC + 20 * kStages + 28 + kPanelAlignment;
  std::uint32_t first;
  __device__ explicit ProductSmem(const void* bytes)
      : first((smem_address(bytes) + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment) {}
  /// Slices are numbered as they are copied, through all tiles of the CTA.
  __device__ std::uint32_t a(unsigned n) const { return first + n % kStages * kSlice; }
  __device__ std::uint32_t b(unsigned n) const { return a(n) + kSliceA; }
  __device__ std::uint32_t c(int warpgroup) const { return first + kStages * kSlice + warpgroup * kTileC; }
  __device__ std::uint32_t full(unsigned n) const { return c(2) + 16 * (n % kStages); }  ///< ends when slice n has come
  __device__ std::uint32_t free(unsigned n) const { return full(n) + 8; }                ///< and when it is multiplied
  __device__ void wait_full(unsigned n) const { wait_barrier(full(n), n / kStages % 2); }
  /// For the end of the slice that was there before; at first there was none.
  __device__ void wait_free(unsigned n) const { wait_barrier(free(n), n / kStages % 2 ^ 1); }
  /// Each of the four warps that multiply slice n says so when it is done.
  __device__ void release(unsigned n) const {
    if (lane_now() == 0) arrive(free(n));
  }
  /// Holds the tile that slice n is of, or kNoTile in place of a slice after the last.
  static constexpr unsigned kNoTile = ~0u;
  __device__ std::uint32_t tile_word(unsigned n) const { return drawn() + 4 + 4 * (n % kStages); }
  /// What it holds, for a warp: the lane that will release the slice reads it.
  __device__ unsigned tile_of(unsigned n) const {
    return __shfl_sync(~0u, lane_now() == 0 ? load_smem(tile_word(n)) : kNoTile, 0);
  }
  /// Not 0 once the other warpgroup has seen kNoTile: this one, which comes after it, will have no tile either.
  __device__ std::uint32_t ended(int warpgroup) const { return drawn() + 4 + 4 * kStages + 4 * warpgroup; }
  /// Of CTAs abreast: ends when all are ready for the nth draw, in the first of them; and when its number has come
  /// here.
  __device__ std::uint32_t ready() const { return c(2) + 16 * kStages; }
  __device__ std::uint32_t drawn_full() const { return ready() + 8; }
  __device__ std::uint32_t drawn() const { return ready() + 16; }
  __device__ void init_barriers() const {
    for (unsigned n = 0; n < kStages; ++n) {
      init_barrier(full(n), 1);
      init_barrier(free(n), 4);
    }
    init_barrier(ready(), Product::kAbreast);
    init_barrier(drawn_full(), 1);
    store_smem(ended(0), 0);
    store_smem(ended(1), 0);
    fence_barriers();
  }
};

/// The tiles of a launch: a CTA begins with that of its own number and then draws the next that nobody has. Of CTAs
/// abreast the first draws for all.
struct Tiles {
  unsigned count;
  unsigned* drawn;  ///< beyond the first of each CTA, or cluster; 0 at the start of a launch, and again at its end
};

struct ProductMaps {
  CUtensorMap a, b, c;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// In the CTA's nth tile. CTAs abreast wait for each other here: so they read the same rows of A at about one time.
template <class Product>
__device__ unsigned draw_tile(const Tiles& tiles, const ProductSmem<Product>& smem, unsigned n) {
  if constexpr (Product::kAbreast > 1) {
    arrive_at(smem.ready(), 0);
    if (cluster_rank() > 0) return 0;
    wait_barrier(smem.ready(), n % 2);
  }
  const unsigned draw = atomicAdd(tiles.drawn, 1);
  if constexpr (Product::kAbreast > 1) {
    for (unsigned to = 0; to < Product::kAbreast; ++to) send(smem.drawn(), to, draw, smem.drawn_full());
  }
  return draw;
}
template <class Product>
__device__ unsigned next_tile(const Tiles& tiles, const ProductSmem<Product>& smem, unsigned n, unsigned draw) {
  constexpr unsigned kAbreast = Product::kAbreast;
  if constexpr (kAbreast > 1) {
    arrive_expecting(smem.drawn_full(), 4);
    wait_barrier(smem.drawn_full(), n % 2);
    draw = load_smem(smem.drawn());
  }
  if (draw == tiles.count / kAbreast - 1) *tiles.drawn = 0;  // there are as many draws as tiles, or pairs of them
  return draw * kAbreast + gridDim.x + blockIdx.x % kAbreast;
}

/// Starts the copies of all slices of all tiles of this CTA, each when there is room: the work of one thread.
template <class Product, class Counter>
__device__ void copy_slices(const AttentionArgs& args, const ProductMaps& maps, const ProductSmem<Product>& smem,
                            const Tiles& tiles, Counter& counter) {
  const Extent all = Product::extent(args);
  const std::uint64_t evict_first = evict_first_policy();
  const int draw_at = max(0, (static_cast<int>(ceil_div(all.depth, kDepth)) - kDrawAhead) * kDepth);
  unsigned n = 0, tile = blockIdx.x;
#pragma unroll 1
  for (unsigned tile_count = 0; tile < tiles.count; ++tile_count) {
    unsigned draw = 0;
    const TilePlace at = Product::tile(args, tile);
    const int row = at.row * kBr, column = at.column * Product::kColumns;
    const int rows = min(kBr, all.rows - row), columns = min(Product::kColumns, all.columns - column);
    const int kv_head = kv_head_of(args, at.head);
#pragma unroll 1
    for (int x = 0; x < all.depth; x += kDepth, ++n) {
      const int depth = min(kDepth, all.depth - x);
      if (x == draw_at) draw = draw_tile(tiles, smem, tile_count);
      smem.wait_free(n);
      store_smem(smem.tile_word(n), tile);
      arrive_expecting(smem.full(n), ProductSmem<Product>::kSlice);
      // HBM read: A tile [Br, 64]
      if constexpr (Product::kReuseOfA == Reuse::none) {
        start_tensor_load(smem.a(n), maps.a, x, row, at.head, at.batch, smem.full(n), evict_first);
      } else {
        start_tensor_load(smem.a(n), maps.a, x, row, at.head, at.batch, smem.full(n));
      }
      counter.read(Product::kA, 2 * rows * depth);
      // HBM read: B tile [Bc, 64] or [64, Bc]
      if constexpr (Product::kLayout == OperandB::by_column) {
        start_tensor_load(smem.b(n), maps.b, x, column, kv_head, at.batch, smem.full(n));
      } else {
#pragma unroll
        for (int panel = 0; panel < Product::kColumns; panel += kPanelWidth) {
          start_tensor_load(smem.b(n) + panel * kDepth * 2, maps.b, column + panel, x, kv_head, at.batch, smem.full(n));
        }
      }
      counter.read(Product::kB, 2 * columns * depth);
    }
    tile = next_tile(tiles, smem, tile_count, draw);
  }
  smem.wait_free(n);
  store_smem(smem.tile_word(n), ProductSmem<Product>::kNoTile);
  arrive(smem.full(n));
}

/// Starts the store of a staged tile of C. HBM write: C tile [Br, Bc]
template <class Product, class Counter>
__device__ void store_tile(const AttentionArgs& args, const CUtensorMap& map, std::uint32_t staged, const TilePlace& at,
                           Counter& counter) {
  const Extent all = Product::extent(args);
  const int row = at.row * kBr, column = at.column * Product::kColumns;
#pragma unroll
  for (int x = 0; x < Product::kColumns; x += kPanelWidth) {
    if (column + x >= all.columns) break;
    start_tensor_store(map, staged + x * kBr * 2, column + x, row, at.head, at.batch);
  }
  commit_tensor_stores();
  counter.wrote(Product::kC, 2 * min(kBr, all.rows - row) * min(Product::kColumns, all.columns - column));
}

#endif

template <class T, class Product, bool kCounted>
__global__ void __launch_bounds__(kThreads, 1)
    product_kernel(const __grid_constant__ AttentionArgs args, const __grid_constant__ ProductMaps maps,
                   const Tiles tiles) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) unsigned char smem_bytes[];
  using Smem = ProductSmem<Product>;
  const Smem smem(smem_bytes);
  if (threadIdx.x == 0) smem.init_barriers();
  if constexpr (Product::kAbreast > 1) {
    sync_cluster();
  } else {
    __syncthreads();
  }

  ByteCounter<kCounted> counter;
  if (threadIdx.x >= 2 * 128) {
    if (threadIdx.x == 2 * 128) copy_slices(args, maps, smem, tiles, counter);
  } else {
    const int warpgroup = static_cast<int>(threadIdx.x) / 128;
    const bool stores = threadIdx.x % 128 == 0;
    const auto slices = static_cast<unsigned>(ceil_div(Product::extent(args).depth, kDepth));
    const std::uint32_t staged = smem.c(warpgroup);
#pragma unroll 1
    for (unsigned n = warpgroup * slices;; n += 2 * slices) {
      // The other one has seen all slices before these come: a barrier's parity tells one phase from the next, no more.
      if (n > 0) sync_named(kTurn + warpgroup, 2 * 128);
      if (load_smem(smem.ended(warpgroup)) != 0) break;
      smem.wait_full(n);
      const unsigned tile = smem.tile_of(n);
      if (tile == Smem::kNoTile) {
        if (stores) store_smem(smem.ended(1 - warpgroup), 1);
        arrive_named(kTurn + 1 - warpgroup, 2 * 128);
        break;
      }
      WgmmaTile<T, kBr, Product::kColumns, Product::kLayout> c;
      c.multiply(smem, n, n + slices);
      arrive_named(kTurn + 1 - warpgroup, 2 * 128);
      c.finish(smem, n + slices);

      if (stores) wait_tensor_stores();  // the tile before has left SMEM
      sync_named(kStaging + warpgroup, 128);
      c.stage(staged);
      sync_named(kStaging + warpgroup, 128);
      if (stores) store_tile<Product>(args, maps.c, staged, Product::tile(args, tile), counter);
    }
    if (stores) wait_tensor_stores();
  }
  counter.flush(args.byte_counters);
  if constexpr (Product::kAbreast > 1) sync_cluster();  // a neighbour may still arrive at this CTA's barriers
#endif
}

template <class T, class Product>
void launch(const Call& call, const Rows& a, const Rows& b, const Rows& c, const char* what) {
  const auto kernel = call.counted ? product_kernel<T, Product, true> : product_kernel<T, Product, false>;
  constexpr std::size_t kSmem = ProductSmem<Product>::kBytes;
  allow_smem(call, reinterpret_cast<const void*>(kernel), kSmem, what);
  const std::int64_t tiles = ceil_div(c.rows, kBr) * ceil_div(c.width, Product::kColumns) * c.heads * c.batch;
  const int rows_of_b = Product::kLayout == OperandB::by_column ? Product::kColumns : kDepth;
  const ProductMaps maps{panel_map(a, kBr, Product::kReuseOfA != Reuse::none), panel_map(b, rows_of_b),
                         panel_map(c, kBr)};
  constexpr unsigned kAbreast = Product::kAbreast;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kAbreast, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = grid_of(std::min(tiles, num_sms() / kAbreast * kAbreast));
  config.blockDim = kThreads;
  config.dynamicSmemBytes = kSmem;
  config.stream = call.stream;
  config.attrs = &cluster;
  config.numAttrs = kAbreast > 1 ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, call.args, maps, Tiles{grid_of(tiles), draw_counter(what)});
  check_launch(what);
}

/// A tensor of a call: rows of `width` elements that start `stride` apart.
Rows rows_of(const Call& call, Tensor tensor, int heads, int rows, int width, int stride) {
  return {call.args.get<void>(tensor), call.dtype, call.args.batch, heads, rows, width, stride};
}
template <class T>
void launch_qk(const Call& call) {
  const AttentionArgs& a = call.args;
  launch<T, ScoreProduct>(call, rows_of(call, Tensor::Q, a.num_heads, a.seqlen_q, a.head_dim, a.head_dim),
                          rows_of(call, Tensor::K, a.num_kv_heads, a.seqlen_kv, a.head_dim, a.head_dim),
                          rows_of(call, Tensor::S, a.num_heads, a.seqlen_q, a.seqlen_kv, a.score_stride), "naive qk");
}
template <class T, class Product>
void launch_pv(const Call& call) {
  const AttentionArgs& a = call.args;
  launch<T, Product>(call, rows_of(call, Tensor::P, a.num_heads, a.seqlen_q, a.seqlen_kv, a.score_stride),
                     rows_of(call, Tensor::V, a.num_kv_heads, a.seqlen_kv, a.head_dim_v, a.head_dim_v),
                     rows_of(call, Tensor::O, a.num_heads, a.seqlen_q, a.head_dim_v, a.head_dim_v), "naive pv");
}
template <class T>
void launch_pv_of(const Call& call) {
  if (call.args.head_dim_v <= 64) return launch_pv<T, OutputProduct<64, 1>>(call);
  if (call.args.head_dim_v <= 128) return launch_pv<T, OutputProduct<128, 1>>(call);
  launch_pv<T, OutputProduct<128, 2>>(call);
}

}  // namespace

void launch_naive_qk_hopper(const Call& call) {
  call.dtype == Dtype::bf16 ? launch_qk<BFloat16>(call) : launch_qk<Half>(call);
}
void launch_naive_pv_hopper(const Call& call) {
  call.dtype == Dtype::bf16 ? launch_pv_of<BFloat16>(call) : launch_pv_of<Half>(call);
}

}  // namespace hbmscope::kernels
