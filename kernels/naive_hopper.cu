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
// and CTAs that drift apart no longer find in L2 what they share. That is also why an O of two tiles a row is not made
// here, but by naive.cu, in clusters: CTAs that draw its tiles do not ask for a row of P together (docs/kernels.md).
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

/// C = A B for both; `kColumns` of C make a tile. extent() is what of them there is.
struct Extent {
  int rows, columns, depth;
};
struct ScoreProduct {  // S = Q K^T
  static constexpr Tensor kA = Tensor::Q, kB = Tensor::K, kC = Tensor::S;
  static constexpr OperandB kLayout = OperandB::by_column;
  static constexpr Reuse kReuseOfA = Reuse::soon;
  static constexpr int kColumns = 128;
  __host__ __device__ static Extent extent(const AttentionArgs& a) { return {a.seqlen_q, a.seqlen_kv, a.head_dim}; }
  __device__ static TilePlace tile(const AttentionArgs& a, unsigned number) {
    return score_tile<2>(a, number, kBr, kColumns);
  }
};
template <int kColumnsOfTile>
struct OutputProduct {  // O = P V
  static constexpr Tensor kA = Tensor::P, kB = Tensor::V, kC = Tensor::O;
  static constexpr OperandB kLayout = OperandB::by_depth;
  static constexpr Reuse kReuseOfA = Reuse::none;
  static constexpr int kColumns = kColumnsOfTile;
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
  static constexpr std::uint32_t kBytes = kStages * kSlice + 2 * kTileC + 20 * kStages + 8 + kPanelAlignment;
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
  __device__ std::uint32_t tile_word(unsigned n) const { return c(2) + 16 * kStages + 4 * (n % kStages); }
  /// What it holds, for a warp: the lane that will release the slice reads it.
  __device__ unsigned tile_of(unsigned n) const {
    return __shfl_sync(~0u, lane_now() == 0 ? load_smem(tile_word(n)) : kNoTile, 0);
  }
  /// Not 0 once the other warpgroup has seen kNoTile: this one, which comes after it, will have no tile either.
  __device__ std::uint32_t ended(int warpgroup) const { return c(2) + 20 * kStages + 4 * warpgroup; }
  __device__ void init_barriers() const {
    for (unsigned n = 0; n < kStages; ++n) {
      init_barrier(full(n), 1);
      init_barrier(free(n), 4);
    }
    store_smem(ended(0), 0);
    store_smem(ended(1), 0);
    fence_barriers();
  }
};

/// The tiles of a launch: a CTA begins with that of its own number and then draws the next that nobody has.
struct Tiles {
  unsigned count;
  unsigned* drawn;  ///< beyond the first of each CTA; 0 at the start of a launch, and again at its end
};

struct ProductMaps {
  CUtensorMap a, b, c;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// Starts the copies of all slices of all tiles of this CTA, each when there is room: the work of one thread.
template <class Product, class Counter>
__device__ void copy_slices(const AttentionArgs& args, const ProductMaps& maps, const ProductSmem<Product>& smem,
                            const Tiles& tiles, Counter& counter) {
  const Extent all = Product::extent(args);
  const std::uint64_t evict_first = evict_first_policy();
  unsigned n = 0, tile = blockIdx.x;
#pragma unroll 1
  while (tile < tiles.count) {
    const unsigned draw = atomicAdd(tiles.drawn, 1);
    const TilePlace at = Product::tile(args, tile);
    const int row = at.row * kBr, column = at.column * Product::kColumns;
    const int rows = min(kBr, all.rows - row), columns = min(Product::kColumns, all.columns - column);
    const int kv_head = kv_head_of(args, at.head);
#pragma unroll 1
    for (int x = 0; x < all.depth; x += kDepth, ++n) {
      const int depth = min(kDepth, all.depth - x);
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
    if (draw == tiles.count - 1) *tiles.drawn = 0;  // there are as many draws as tiles
    tile = draw + gridDim.x;
  }
  smem.wait_free(n);
  store_smem(smem.tile_word(n), ProductSmem<Product>::kNoTile);
  arrive(smem.full(n));
}

/// C = A B over slices `first` to `last` - 1, of which the last is under way when it returns.
template <class Tile, class Product>
__device__ void multiply_slices(Tile& c, const ProductSmem<Product>& smem, unsigned first, unsigned last) {
#pragma unroll 1
  for (unsigned n = first; n < last; ++n) {
    smem.wait_full(n);
    c.multiply_slice(smem.a(n), smem.b(n), n > first);
    if (n > first) {
      wait_wgmma<1>();
      smem.release(n - 1);
    }
  }
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
  __syncthreads();

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
      multiply_slices(c, smem, n, n + slices);
      arrive_named(kTurn + 1 - warpgroup, 2 * 128);
      wait_wgmma<0>();
      smem.release(n + slices - 1);

      if (stores) wait_tensor_stores();  // the tile before has left SMEM
      sync_named(kStaging + warpgroup, 128);
      c.stage(staged, thread_now() % 128 / kWarpSize, lane_now());
      sync_named(kStaging + warpgroup, 128);
      if (stores) store_tile<Product>(args, maps.c, staged, Product::tile(args, tile), counter);
    }
    if (stores) wait_tensor_stores();
  }
  counter.flush(args.byte_counters);
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
  const auto ctas = static_cast<unsigned>(std::min(tiles, num_sms()));
  kernel<<<ctas, kThreads, kSmem, call.stream>>>(call.args, maps, Tiles{grid_of(tiles), draw_counter(what)});
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
  if (call.args.head_dim_v <= 64) return launch_pv<T, OutputProduct<64>>(call);
  launch_pv<T, OutputProduct<128>>(call);
}

}  // namespace

void launch_naive_qk_hopper(const Call& call) {
  call.dtype == Dtype::bf16 ? launch_qk<BFloat16>(call) : launch_qk<Half>(call);
}
void launch_naive_pv_hopper(const Call& call) {
  call.dtype == Dtype::bf16 ? launch_pv_of<BFloat16>(call) : launch_pv_of<Half>(call);
}

}  // namespace hbmscope::kernels
