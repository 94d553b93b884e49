// Idea:    a CTA owns a query tile, keeps its O, l and m on chip and streams K and V past it; no S, no P in HBM
// Reads:   Q = B*H*Nq*d*e; K = B*H*ceil(Nq/Br)*Nk*d*e; V = B*H*ceil(Nq/Br)*Nk*dv*e
// Writes:  O = B*H*Nq*dv*e; LSE = B*H*Nq*4
// On chip: (Br*D + 2*S*Bc*D)*e
// Costs:   2*B*H*ceil(Nq/Br)*Br*ceil(Nk/Bc)*Bc*(d16+dv16)
//
// FlashAttention-2 (arXiv 2307.08691), Algorithm 1, on mma.sync tensor cores. K and V have S = 2 buffers each: while
// one pair of tiles is multiplied, cp.async brings the next. At 256 wide they have one: V comes while Q K^T is computed
// and the next K while P V is, and there is room for a second CTA on the SM, which fills the waits in between. D is
// head_dim rounded up to a compiled width; d16 and dv16 are rounded up to 16, the depth of a tensor-core instruction.
// Tiles that the mask hides whole are neither read nor computed.
#include "kernels/flash_tiles.hpp"
#include "kernels/softmax.cuh"
#include "kernels/tile.cuh"

namespace hbmscope::kernels {
namespace {

template <class T, class Tile, bool kExact, bool kCounted>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kCtasPerSm)
    flash_v2_kernel(const __grid_constant__ AttentionArgs a) {
  constexpr int kD = Tile::kHeadDim, kBq = Tile::kBlockQ, kBkv = Tile::kBlockKv;
  constexpr int kM = kBq / Tile::kWarps / 16;  // 16-row blocks of a warp
  constexpr int kThreads = Tile::kThreads;
  constexpr std::uint32_t kTileKv = kBkv * kD * 2;
  constexpr bool kTwoBuffers = Tile::kStages == 2;
  extern __shared__ __align__(128) unsigned char smem[];
  const std::uint32_t q_tile = smem_address(smem), k_tiles = q_tile + kBq * kD * 2;
  const std::uint32_t v_tiles = k_tiles + Tile::kStages * kTileKv;

  ByteCounter<kCounted> counter;
  const int d = kExact ? kD : a.head_dim, dv = kExact ? kD : a.head_dim_v;
  const int warp_row = static_cast<int>(threadIdx.x) / kWarpSize * kM * 16;  // of the query tile
  RowState<kM> row;                                                          // l and m
  float o[kM][kD / 8][4] = {};
  {
    const Place at = place_of_cta(a, static_cast<int>(ceil_div(a.seqlen_q, kBq)));
    const int q_first = at.tile * kBq, q_rows = min(kBq, a.seqlen_q - q_first);
    const KeyRange keys = visible_keys(a, q_first, q_first + q_rows - 1);
    const int kv_head = at.head / (a.num_heads / a.num_kv_heads), j_first = keys.first / kBkv;
    // Row of the current tile's first key among those of all heads; its offset in elements takes 64 bits.
    auto kv_row =
        static_cast<unsigned>(head_offset(at.batch, kv_head, a.num_kv_heads, a.seqlen_kv, 1) + j_first * kBkv);
    int left = a.seqlen_kv - j_first * kBkv;          // keys from there on
    const auto load_k = [&](std::uint32_t buffer) {   // HBM read: K tile [Bc, d]
      load_slice<kBkv, kD, kThreads>(k_tiles + buffer, a.get<const T>(Tensor::K) + std::int64_t{kv_row} * d, d, left, d,
                                     Tensor::K, counter);
      commit_copies();
    };
    const auto load_v = [&](std::uint32_t buffer) {  // HBM read: V tile [Bc, dv]
      load_slice<kBkv, kD, kThreads>(v_tiles + buffer, a.get<const T>(Tensor::V) + std::int64_t{kv_row} * dv, dv, left,
                                     dv, Tensor::V, counter);
      commit_copies();
      kv_row += kBkv;
      left -= kBkv;
    };
    if (!keys.empty()) {
      // HBM read: Q tile [Br, d]
      const T* q = a.get<const T>(Tensor::Q) + head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, d);
      load_slice<kBq, kD, kThreads>(q_tile, q + std::int64_t{q_first} * d, d, q_rows, d, Tensor::Q, counter);
      load_k(0);
      if constexpr (kTwoBuffers) load_v(0);
    }
    QInSmem<kM, kD> warp_q(block_address<kD>(q_tile, warp_row, 0));
    const std::uint32_t k_at = block_address_b<kD>(k_tiles, 0, 0), v_at = block_address<kD>(v_tiles, 0, 0);
    std::uint32_t buffer = 0;  // 0 or kTileKv
    for (int c = j_first * kBkv; c <= keys.last && !keys.empty(); c += kBkv, buffer ^= kTwoBuffers ? kTileKv : 0) {
      wait_copies<0>();
      __syncthreads();  // what is multiplied next has come, and all warps are done with what is overwritten next
      const bool more = c + kBkv <= keys.last;
      if constexpr (kTwoBuffers) {
        if (more) load_k(buffer ^ kTileKv), load_v(buffer ^ kTileKv);
      } else {
        load_v(0);
      }

      float s[kM][kBkv / 8][4] = {};
      multiply_qk<T, kM, kBkv, kD, kExact>(s, warp_q, k_at + buffer, d);
      if constexpr (!kTwoBuffers) {
        wait_copies<0>();
        __syncthreads();
        if (more) load_k(0);
      }
      if (!keys.all_visible(c, c + kBkv - 1)) mask_scores<kM, kBkv>(s, a, q_first + warp_row, c);
      rescale(row, o, update_maximum(row, s, a.scale));
      multiply_pv<T, kM, kBkv, kD, kExact>(o, s, row, v_at + buffer, dv, a.to_log2);
    }
  }
  __syncthreads();  // the Q tile is free: O leaves through it

  // HBM write: O tile [Br, dv], LSE [Br]
  const Place at = place_of_cta(a, static_cast<int>(ceil_div(a.seqlen_q, kBq)));
  const int q_first = at.tile * kBq, q_rows = min(kBq, a.seqlen_q - q_first);
  finish_rows(row, o);
  T* o_out = a.get<T>(Tensor::O) + head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, dv);
  store_rows<T, kM, kD>(o_out + std::int64_t{q_first} * dv, o, q_tile, warp_row, q_rows, dv, Tensor::O, counter);
  float* lse = a.get<float>(Tensor::LSE) + head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, 1);
  store_lse<kM>(lse + q_first, row, warp_row, q_rows, counter);
  counter.flush(a.byte_counters);
}

template <class T, class Tile>
void launch_tile(const Call& call) {
  const AttentionArgs& a = call.args;
  const bool exact = a.head_dim == Tile::kHeadDim && a.head_dim_v == Tile::kHeadDim;
  const auto kernel = call.counted ? flash_v2_kernel<T, Tile, false, true>
                      : exact      ? flash_v2_kernel<T, Tile, true, false>
                                   : flash_v2_kernel<T, Tile, false, false>;
  constexpr std::size_t kSmem = (Tile::kBlockQ + 2 * Tile::kStages * Tile::kBlockKv) * Tile::kHeadDim * 2;
  allow_smem(call, reinterpret_cast<const void*>(kernel), kSmem, "flash_v2");
  const std::int64_t ctas = ceil_div(a.seqlen_q, Tile::kBlockQ) * a.num_heads * a.batch;
  kernel<<<grid_of(ctas), Tile::kThreads, kSmem, call.stream>>>(a);
  check_launch("flash_v2");
}

void launch(const Call& call) {
  with_flash_tile(call.args.head_dim, call.args.head_dim_v, [&](auto tile) {
    using Tile = decltype(tile);
    call.dtype == Dtype::bf16 ? launch_tile<BFloat16, Tile>(call) : launch_tile<Half, Tile>(call);
  });
}

std::string unsupported(const AttentionShape& s) {
  if (s.dtype == Dtype::fp8) return std::string(kFp8Elsewhere);
  if (s.dtype != Dtype::fp16 && s.dtype != Dtype::bf16) return "the tensor-core kernel takes fp16 and bf16";
  return unsupported_shape(s);
}

TilePlan plan(const AttentionShape& s, const TilePlan& wanted) {
  TilePlan p = wanted;
  with_flash_tile(s.head_dim, s.head_dim_v, [&](auto tile) {
    using Tile = decltype(tile);
    take_block("flash_v2", "--block-q", p.block_q, Tile::kBlockQ);
    take_block("flash_v2", "--block-kv", p.block_kv, Tile::kBlockKv);
    take_block("flash_v2", "--cluster", p.cluster, 1);
    p.stages = Tile::kStages;
  });
  return p;
}

std::vector<Temporary> temporaries(const AttentionShape&, const TilePlan&) {
  return {};
}
std::vector<Stage> stages(const AttentionShape&, const TilePlan&) {
  return {{"fused", launch}};
}

}  // namespace

extern const Pipeline kPipeline_flash_v2{"flash_v2",  "flash_v2", "kernels/flash_v2.cu", unsupported, plan,
                                         temporaries, stages};

}  // namespace hbmscope::kernels
