// Idea:    KV outer: a CTA keeps a K and V tile on chip and visits all query tiles, whose O, l and m live in HBM
// Reads:   Q = B*H*ceil(Nk/Bc)*Nq*d*e; K = B*H*Nk*d*e; V = B*H*Nk*dv*e; O = B*H*ceil(Nk/Bc)*Nq*dv*e;
//          l = m = B*H*ceil(Nk/Bc)*Nq*4
// Writes:  init: O = B*H*Nq*dv*e; l = m = B*H*Nq*4; fused: O = B*H*ceil(Nk/Bc)*Nq*dv*e; l = m = B*H*ceil(Nk/Bc)*Nq*4
// On chip: (Qb*Br + 2*Bc)*D*e
// Costs:   2*B*H*ceil(Nq/Br)*Br*ceil(Nk/Bc)*Bc*(d16+dv16)
//
// Variant released:
// Reads:   Q = B*H*ceil(Nk/Bc)*Nq*d*e; K = B*H*Nk*d*e; V = B*H*Nk*dv*e; Otmp = B*H*(ceil(Nk/Bc)-1)*Nq*dv*4;
//          LSE = B*H*(ceil(Nk/Bc)-1)*Nq*4
// Writes:  O = B*H*Nq*dv*e; Otmp = B*H*(ceil(Nk/Bc)-1)*Nq*dv*4; LSE = B*H*ceil(Nk/Bc)*Nq*4
//
// FlashAttention (arXiv 2205.14135), Algorithm 1, on mma.sync tensor cores; fp32 is in flash_v1_fp32.cu. The outer loop
// takes every K and V tile, whether a query sees it or not; the inner one visits the query tiles that do. `released` is
// what the first public kernels made of it: no init, an unrounded Otmp and one LSE a row between visits. D is head_dim
// rounded up to a compiled width, Qb the number of Q tiles that SMEM has room for; d16 and dv16 are rounded up to 16,
// the depth of a tensor-core instruction.
#include "kernels/flash_v1_mma.cuh"

namespace hbmscope::kernels {
namespace {

template <class T, class Tile, FlashV1Variant kVariant, bool kCounted>
__global__ void __launch_bounds__(Tile::kThreads, 1) flash_v1_kernel(const __grid_constant__ AttentionArgs a) {
  constexpr bool kPaper = kVariant == FlashV1Variant::paper;
  constexpr int kD = Tile::kHeadDim, kBq = Tile::kBlockQ, kBkv = Tile::kBlockKv, kBuffers = Tile::kQBuffers;
  constexpr bool kReadsAhead = kD <= 128;  // registers hold the old O beside S
  static_assert(Tile::kWarpRows == 16, "a warp has one 16-row block of the query tile");
  constexpr std::uint32_t kTileQ = kBq * kD * 2, kTileKv = kBkv * kD * 2;
  extern __shared__ __align__(128) unsigned char smem[];
  const std::uint32_t k_tile = smem_address(smem), v_tile = k_tile + kTileKv, q_tiles = v_tile + kTileKv;

  ByteCounter<kCounted> counter;
  const Place at = place_of_cta(a, 1);
  const int kv_head = at.head / (a.num_heads / a.num_kv_heads);
  const int d = a.head_dim, dv = a.head_dim_v;
  const T* q = a.get<const T>(Tensor::Q) + head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, d);
  const T* k = a.get<const T>(Tensor::K) + head_offset(at.batch, kv_head, a.num_kv_heads, a.seqlen_kv, d);
  const T* v = a.get<const T>(Tensor::V) + head_offset(at.batch, kv_head, a.num_kv_heads, a.seqlen_kv, dv);
  const std::int64_t head_row = head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, 1);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp_row = static_cast<int>(threadIdx.x) / kWarpSize * 16;  // of each query tile

  const auto q_tile_of = [&](int i) { return q_tiles + (i % kBuffers) * kTileQ; };
  const auto load_q = [&](int i) {  // HBM read: Q tile [Br, d], each warp its rows
    const std::int64_t first = std::int64_t{i} * kBq;
    load_warp_rows<16, kD>(q_tile_of(i), warp_row, q + first * d, a.seqlen_q - i * kBq, d, Tensor::Q, counter);
    commit_copies();
  };

  for (int j = 0; j < static_cast<int>(ceil_div(a.seqlen_kv, kBkv)); ++j) {
    const int c_first = j * kBkv, c_rows = min(kBkv, a.seqlen_kv - c_first);
    const TileRange visits = tiles_that_see<kBq>(a, c_first, c_first + c_rows - 1);
    __syncthreads();  // all warps are done with the tiles before
    // HBM read: K tile [Bc, d], V tile [Bc, dv]
    load_tile<kBkv, kD, Tile::kThreads>(k_tile, k + std::int64_t{c_first} * d, d, c_rows, d, Tensor::K, counter);
    load_tile<kBkv, kD, Tile::kThreads>(v_tile, v + std::int64_t{c_first} * dv, dv, c_rows, dv, Tensor::V, counter);
    commit_copies();
    if (visits.first <= visits.last) load_q(visits.first);
    wait_copies<0>();
    __syncthreads();

    for (int i = visits.first; i <= visits.last; ++i) {
      const int q_first = i * kBq, q_rows = min(kBq, a.seqlen_q - q_first);
      const KeyRange keys = visible_keys(a, q_first, q_first + q_rows - 1);
      const bool first_visit = keys.first / kBkv == j, last_visit = keys.last / kBkv == j;
      const std::uint32_t q_tile = q_tile_of(i);
      const std::int64_t first_row = head_row + q_first;
      T* o_tile = a.get<T>(Tensor::O) + first_row * dv;
      float* otmp_tile = kPaper ? nullptr : a.get<float>(Tensor::Otmp) + first_row * dv;
      const bool owns_row = lane < 16 && warp_row + lane < q_rows;  // of l, m and LSE

      // HBM read: O tile [Br, dv], l and m [Br] (paper); LSE [Br] (released)
      RowStatistics mine;
      if (owns_row && (kPaper || !first_visit)) {
        mine = read_statistics<kVariant>(a, first_row + warp_row + lane, counter);
      }
      const WarpRows<kD> o_rows{q_tile, warp_row, q_rows, dv};
      uint4 old[kD / 16];
      if constexpr (kPaper && kReadsAhead) o_rows.read(old, o_tile, counter);

      wait_copies<0>();
      __syncwarp();  // Q has come, and the warp is done with the other buffer
      if (kBuffers == 2 && i < visits.last) load_q(i + 1);

      float s[1][kBkv / 8][4] = {};
      QInSmem<1, kD> warp_q(block_address<kD>(q_tile, warp_row, 0));
      multiply_qk<T, 1, kBkv, kD, false>(s, warp_q, block_address_b<kD>(k_tile, 0, 0), d);
      __syncwarp();  // the warp's rows of the Q tile are free: O passes through them
      if constexpr (kPaper && !kReadsAhead) o_rows.read(old, o_tile, counter);
      if constexpr (kPaper) o_rows.put(old);
      if (!keys.all_visible(c_first, c_first + kBkv - 1)) mask_scores<1, kBkv>(s, a, q_first + warp_row, c_first);

      RowState<1> tile;
      std::uint32_t p[kBkv / 16][4];
      update_maximum(tile, s, a.to_log2);
      exponentiate_to_p<T, kBkv>(p, s, tile.m[0], tile.l[0], a.to_log2);
      Merged merged[2];  // rows l/4 and l/4 + 8 of the warp's
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = 8 * half + lane / 4;
        const RowStatistics before{__shfl_sync(0xffffffffu, mine.m, r), __shfl_sync(0xffffffffu, mine.l, r)};
        merged[half] = merge(before, {natural_maximum(tile.m[0][half]), quad_sum(tile.l[0][half])});
      }
      __syncwarp();  // what the lanes put into SMEM is there

      // O = keep O + add (P V), 64 columns at a time: O need not stay in registers, as it leaves with the visit anyway.
      // HBM read (released): Otmp tile [Br, dv]. HBM write: O tile [Br, dv] (paper, and the last visit), else Otmp
      constexpr int kColumns = 64;
#pragma unroll 1
      for (int x = 0; x < dv; x += kColumns) {
        float o[kColumns / 8][4] = {};
        multiply_columns<T, kBkv, kD, kColumns>(o, p, v_tile, x, dv);
#pragma unroll
        for (int n0 = 0; n0 < kColumns / 8; n0 += 4) {
          float2 before[4][2];  // asked for together, so that they come together
#pragma unroll
          for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const int row = warp_row + 8 * half + lane / 4, column = x + 8 * (n0 + n) + 2 * (lane % 4);
              before[n][half] = {0, 0};
              if constexpr (kPaper) {
                before[n][half] = unpack<T>(load_pair(o_rows.pair(x / 8 + n0 + n, half)));
              } else if (!first_visit && row < q_rows && column < dv) {
                before[n][half] = read_back(reinterpret_cast<const float2*>(otmp_tile + row * dv + column));
                counter.read(Tensor::Otmp, 8);
              }
            }
          }
#pragma unroll
          for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const int row = warp_row + 8 * half + lane / 4, column = x + 8 * (n0 + n) + 2 * (lane % 4);
              const Merged& w = merged[half];
              const float2 now{w.keep * before[n][half].x + w.add * o[n0 + n][2 * half],
                               w.keep * before[n][half].y + w.add * o[n0 + n][2 * half + 1]};
              if (kPaper || last_visit) {
                store_pair(o_rows.pair(x / 8 + n0 + n, half), pack<T>(now.x, now.y));
              } else if (row < q_rows && column < dv) {
                *reinterpret_cast<float2*>(otmp_tile + row * dv + column) = now;
                counter.wrote(Tensor::Otmp, 8);
              }
            }
          }
        }
      }
      __syncwarp();
      if (kPaper || last_visit) o_rows.write(o_tile, counter);

      // HBM write: l and m [Br] (paper), LSE [Br] (released): lane r has row r, from the four lanes that hold it
      RowStatistics now;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float m = __shfl_sync(0xffffffffu, merged[half].now.m, lane % 8 * 4);
        const float l = __shfl_sync(0xffffffffu, merged[half].now.l, lane % 8 * 4);
        if (lane / 8 == half) now = {m, l};
      }
      if (owns_row) write_statistics<kVariant>(a, first_row + warp_row + lane, now, counter);

      if (kBuffers == 1) {
        __syncwarp();  // O has left the only buffer
        if (i < visits.last) load_q(i + 1);
      }
    }
  }
  counter.flush(a.byte_counters);
}

/// Before the first visit. HBM write (paper): O = 0, l = 0, m = -inf. The released kernels need none of it, since a
/// first visit reads nothing. But query tiles that see no key have no visit, and what an application gets for them is
/// not theirs to leave open: this kernel clears O and LSE of those tiles alone. No byte of that is counted, as the
/// closed form has none; hardware counters and times of such shapes include it.
template <FlashV1Variant kVariant, bool kCounted>
__global__ void __launch_bounds__(128)
    flash_v1_init_kernel(const __grid_constant__ AttentionArgs a, int block_q, int element_bytes) {
  ByteCounter<kCounted> counter;
  const Place at = place_of_cta(a, static_cast<int>(ceil_div(a.seqlen_q, block_q)));
  const int first = at.tile * block_q, rows = min(block_q, a.seqlen_q - first);
  if (kVariant == FlashV1Variant::released && !visible_keys(a, first, first + rows - 1).empty()) return;

  const std::int64_t row = head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, 1) + first;
  auto* o = reinterpret_cast<uint4*>(a.get<unsigned char>(Tensor::O) + row * a.head_dim_v * element_bytes);
  for (int n = static_cast<int>(threadIdx.x); n < rows * a.head_dim_v * element_bytes / 16; n += 128) {
    o[n] = uint4{};
    counter.wrote(Tensor::O, 16);
  }
  for (int r = static_cast<int>(threadIdx.x); r < rows; r += 128) {
    write_statistics<kVariant>(a, row + r, RowStatistics{}, counter);
  }
  counter.flush(a.byte_counters);
}

template <FlashV1Variant kVariant, bool kCounted>
void launch_init_variant(const Call& call) {
  const std::int64_t ctas = ceil_div(call.args.seqlen_q, call.plan.block_q) * call.args.num_heads * call.args.batch;
  flash_v1_init_kernel<kVariant, kCounted><<<grid_of(ctas), 128, 0, call.stream>>>(
      call.args, static_cast<int>(call.plan.block_q), static_cast<int>(info(call.dtype).bytes));
  check_launch("flash_v1 init");
}
void launch_init(const Call& call) {
  call.counted ? launch_init_variant<FlashV1Variant::paper, true>(call)
               : launch_init_variant<FlashV1Variant::paper, false>(call);
}

/// Does any query tile see no key? The band moves with the queries, so the first tile or the last would.
bool has_unseen_tiles(const AttentionArgs& a, std::int64_t block_q) {
  const std::int64_t tiles = ceil_div(a.seqlen_q, block_q);
  const std::int64_t end_of_first = std::min(block_q, std::int64_t{a.seqlen_q}) - 1,
                     start_of_last = (tiles - 1) * block_q;
  return end_of_first + a.band_high < 0 || start_of_last + a.band_low > a.seqlen_kv - 1;
}

template <class T, class Tile, FlashV1Variant kVariant>
void launch_variant(const Call& call) {
  const AttentionArgs& a = call.args;
  const auto kernel =
      call.counted ? flash_v1_kernel<T, Tile, kVariant, true> : flash_v1_kernel<T, Tile, kVariant, false>;
  allow_smem(call, reinterpret_cast<const void*>(kernel), Tile::kSmemBytes, "flash_v1");
  kernel<<<grid_of(std::int64_t{a.batch} * a.num_heads), Tile::kThreads, Tile::kSmemBytes, call.stream>>>(a);
  check_launch("flash_v1");
}

template <class T>
void launch_dtype(const Call& call) {
  with_flash_v1_tile(call.dtype, call.args.head_dim, call.args.head_dim_v, [&](auto tile) {
    using Tile = decltype(tile);
    if constexpr (Tile::kElementBytes == sizeof(T)) {
      call.plan.variant == FlashV1Variant::paper ? launch_variant<T, Tile, FlashV1Variant::paper>(call)
                                                 : launch_variant<T, Tile, FlashV1Variant::released>(call);
    }
  });
}

void launch_fused(const Call& call) {
  if (call.plan.variant == FlashV1Variant::released && has_unseen_tiles(call.args, call.plan.block_q)) {
    launch_init_variant<FlashV1Variant::released, false>(call);
  }
  if (call.dtype == Dtype::fp32) return launch_flash_v1_fp32(call);
  call.dtype == Dtype::bf16 ? launch_dtype<BFloat16>(call) : launch_dtype<Half>(call);
}

std::string unsupported(const AttentionShape& s) {
  if (s.dtype == Dtype::fp8) return std::string(kFp8Elsewhere);
  return unsupported_shape(s);
}

TilePlan plan(const AttentionShape& s, const TilePlan& wanted) {
  TilePlan p = wanted;
  with_flash_v1_tile(s.dtype, s.head_dim, s.head_dim_v, [&](auto tile) {
    using Tile = decltype(tile);
    take_block("flash_v1", "--block-q", p.block_q, Tile::kBlockQ);
    take_block("flash_v1", "--block-kv", p.block_kv, Tile::kBlockKv);
  });
  return p;
}

std::vector<Temporary> temporaries(const AttentionShape& s, const TilePlan& plan) {
  const Count rows = Count(s.batch) * Count(s.num_heads) * Count(s.seqlen_q);
  if (plan.variant == FlashV1Variant::released) {
    return {{Tensor::Otmp, rows * Count(s.head_dim_v) * Bytes(kAccumulatorBytes)}};
  }
  return {{Tensor::l, rows * Bytes(kStatisticBytes)}, {Tensor::m, rows * Bytes(kStatisticBytes)}};
}

std::vector<Stage> stages(const AttentionShape&, const TilePlan& plan) {
  if (plan.variant == FlashV1Variant::released) return {{"fused", launch_fused}};
  return {{"init", launch_init}, {"fused", launch_fused}};
}

}  // namespace

extern const Pipeline kPipeline_flash_v1{"flash_v1",  "flash_v1", "kernels/flash_v1.cu", unsupported, plan,
                                         temporaries, stages};

}  // namespace hbmscope::kernels
