// flash_v1 in fp32, without tensor cores: the same loop nest and the same bytes as flash_v1.cu, whose header is the
// contract of both. A warp computes its rows in registers, each lane every fourth row and every eighth key (S) or
// 16-byte chunk (O): lane l has rows l/8 + 4 t and keys or chunks l%8 + 8 u.
#include "kernels/flash_v1.cuh"

namespace hbmscope::kernels {
namespace {

__device__ float4 load_chunk(std::uint32_t at) {
  float4 x;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(at)
               : "memory");
  return x;
}
__device__ void add_product(float4& sum, float factor, const float4& x) {
  sum.x = fmaf(factor, x.x, sum.x);
  sum.y = fmaf(factor, x.y, sum.y);
  sum.z = fmaf(factor, x.z, sum.z);
  sum.w = fmaf(factor, x.w, sum.w);
}
/// Over the eight lanes that share a row.
__device__ float row_max(float x) {
  x = quad_max(x);
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 4));
}
__device__ float row_sum(float x) {
  x = quad_sum(x);
  return x + __shfl_xor_sync(0xffffffffu, x, 4);
}

template <class Tile, FlashV1Variant kVariant, bool kCounted>
__global__ void __launch_bounds__(Tile::kThreads, 1) flash_v1_fp32_kernel(const __grid_constant__ AttentionArgs a) {
  constexpr bool kPaper = kVariant == FlashV1Variant::paper;
  constexpr int kD = Tile::kHeadDim, kBq = Tile::kBlockQ, kBkv = Tile::kBlockKv, kWarpRows = Tile::kWarpRows;
  constexpr int kWidth = 2 * kD;  // of a tile in SMEM, in the 16-bit elements that tile.cuh counts
  constexpr int kRows = kWarpRows / 4, kKeys = kBkv / 8, kChunks = kD / 32;  // of a lane
  extern __shared__ __align__(128) unsigned char smem[];
  const std::uint32_t k_tile = smem_address(smem), v_tile = k_tile + kBkv * kD * 4, q_tile = v_tile + kBkv * kD * 4;

  ByteCounter<kCounted> counter;
  const Place at = place_of_cta(a, 1);
  const int kv_head = at.head / (a.num_heads / a.num_kv_heads);
  const int d = a.head_dim, dv = a.head_dim_v;
  const float* q = a.get<const float>(Tensor::Q) + head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, d);
  const float* k = a.get<const float>(Tensor::K) + head_offset(at.batch, kv_head, a.num_kv_heads, a.seqlen_kv, d);
  const float* v = a.get<const float>(Tensor::V) + head_offset(at.batch, kv_head, a.num_kv_heads, a.seqlen_kv, dv);
  const std::int64_t head_row = head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, 1);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize, column = lane % 8;
  const int warp_row = static_cast<int>(threadIdx.x) / kWarpSize * kWarpRows;  // of each query tile
  const int lane_row = warp_row + lane / 8;

  const auto load_q = [&](int i) {  // HBM read: Q tile [Br, d], each warp its rows
    const std::int64_t first = std::int64_t{i} * kBq;
    load_warp_rows<kWarpRows, kWidth>(q_tile, warp_row, q + first * d, a.seqlen_q - i * kBq, 2 * d, Tensor::Q, counter);
    commit_copies();
  };
  const auto load_kv = [&](std::uint32_t tile, const float* from, int rows, int width, Tensor tensor) {
    load_tile<kBkv, kWidth, Tile::kThreads>(tile, reinterpret_cast<const Half*>(from), 2 * width, rows, 2 * width,
                                            tensor, counter);
  };

  for (int j = 0; j < static_cast<int>(ceil_div(a.seqlen_kv, kBkv)); ++j) {
    const int c_first = j * kBkv, c_rows = min(kBkv, a.seqlen_kv - c_first);
    const TileRange visits = tiles_that_see<kBq>(a, c_first, c_first + c_rows - 1);
    __syncthreads();  // all warps are done with the tiles before
    // HBM read: K tile [Bc, d], V tile [Bc, dv]
    load_kv(k_tile, k + std::int64_t{c_first} * d, c_rows, d, Tensor::K);
    load_kv(v_tile, v + std::int64_t{c_first} * dv, c_rows, dv, Tensor::V);
    commit_copies();
    if (visits.first <= visits.last) load_q(visits.first);
    wait_copies<0>();
    __syncthreads();

    for (int i = visits.first; i <= visits.last; ++i) {
      const int q_first = i * kBq, q_rows = min(kBq, a.seqlen_q - q_first);
      const KeyRange keys = visible_keys(a, q_first, q_first + q_rows - 1);
      const bool first_visit = keys.first / kBkv == j, last_visit = keys.last / kBkv == j;
      const std::int64_t first_row = head_row + q_first;
      const bool owns_row = lane < kWarpRows && warp_row + lane < q_rows;  // of l, m and LSE
      const auto holds = [&](int t, int u) { return lane_row + 4 * t < q_rows && (column + 8 * u) * 4 < dv; };

      // HBM read: l and m [Br] (paper), LSE [Br] (released)
      RowStatistics mine;
      const bool returns = kPaper || !first_visit;
      if (owns_row && returns) mine = read_statistics<kVariant>(a, first_row + warp_row + lane, counter);
      wait_copies<0>();
      __syncwarp();  // Q has come

      float s[kRows][kKeys] = {};
#pragma unroll 1
      for (int x = 0; x < d; x += 4) {
        float4 left[kRows];
#pragma unroll
        for (int t = 0; t < kRows; ++t) left[t] = load_chunk(q_tile + tile_offset<kWidth>(lane_row + 4 * t, x / 4));
#pragma unroll
        for (int u = 0; u < kKeys; ++u) {
          const float4 right = load_chunk(k_tile + tile_offset<kWidth>(column + 8 * u, x / 4));
#pragma unroll
          for (int t = 0; t < kRows; ++t) {
            s[t][u] = fmaf(left[t].x, right.x, s[t][u]);
            s[t][u] = fmaf(left[t].y, right.y, s[t][u]);
            s[t][u] = fmaf(left[t].z, right.z, s[t][u]);
            s[t][u] = fmaf(left[t].w, right.w, s[t][u]);
          }
        }
      }
      __syncwarp();  // the warp's rows of the Q tile are free: P goes there

      const bool masked = !keys.all_visible(c_first, c_first + kBkv - 1);
      Merged merged[kRows];
#pragma unroll
      for (int t = 0; t < kRows; ++t) {
        const int row = lane_row + 4 * t;
        const KeyRange seen = visible_keys(a, q_first + row, q_first + row);
        RowStatistics tile;
#pragma unroll
        for (int u = 0; u < kKeys; ++u) {
          const int c = c_first + column + 8 * u;
          s[t][u] *= a.scale;
          if (masked && (c < seen.first || c > seen.last)) s[t][u] = kMinusInfinity;  // by assignment: NaN goes too
          tile.m = fmaxf(tile.m, s[t][u]);
        }
        tile.m = row_max(tile.m);
        const float shift = tile.m == kMinusInfinity ? 0.0f : tile.m;  // no key seen
#pragma unroll
        for (int u = 0; u < kKeys; ++u) {
          const float p = expf(s[t][u] - shift);
          tile.l += p;
          const int key = column + 8 * u;
          const std::uint32_t to = q_tile + tile_offset<kWidth>(row, key / 4) + 4 * (key % 4);
          asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(p) : "memory");
        }
        tile.l = row_sum(tile.l);
        const int r = lane / 8 + 4 * t;
        const RowStatistics before{__shfl_sync(0xffffffffu, mine.m, r), __shfl_sync(0xffffffffu, mine.l, r)};
        merged[t] = merge(before, tile);
      }
      __syncwarp();

      float4 o[kRows][kChunks] = {};
#pragma unroll 1
      for (int c = 0; c < kBkv; c += 4) {
        float p[kRows][4];
#pragma unroll
        for (int t = 0; t < kRows; ++t) {
          const float4 x = load_chunk(q_tile + tile_offset<kWidth>(lane_row + 4 * t, c / 4));
          p[t][0] = x.x, p[t][1] = x.y, p[t][2] = x.z, p[t][3] = x.w;
        }
#pragma unroll
        for (int x = 0; x < 4; ++x) {
#pragma unroll
          for (int u = 0; u < kChunks; ++u) {
            const float4 values = load_chunk(v_tile + tile_offset<kWidth>(c + x, column + 8 * u));
#pragma unroll
            for (int t = 0; t < kRows; ++t) add_product(o[t][u], p[t][x], values);
          }
        }
      }
      __syncwarp();  // P is used up: the next Q may come
      if (i < visits.last) load_q(i + 1);

      // HBM read: O tile [Br, dv] (paper), Otmp tile [Br, dv] (released)
      float4 old[kRows][kChunks];
      const Tensor source = kPaper ? Tensor::O : Tensor::Otmp;
      const float* from = a.get<const float>(source) + first_row * dv;
#pragma unroll
      for (int t = 0; t < kRows; ++t) {
#pragma unroll
        for (int u = 0; u < kChunks; ++u) {
          old[t][u] = {0, 0, 0, 0};
          if (!returns || !holds(t, u)) continue;
          old[t][u] = read_back(reinterpret_cast<const float4*>(from + (lane_row + 4 * t) * dv + (column + 8 * u) * 4));
          counter.read(source, 16);
        }
      }
      // HBM write: O or Otmp tile [Br, dv]
      const Tensor target = kPaper || last_visit ? Tensor::O : Tensor::Otmp;
      float* to = a.get<float>(target) + first_row * dv;
#pragma unroll
      for (int t = 0; t < kRows; ++t) {
#pragma unroll
        for (int u = 0; u < kChunks; ++u) {
          if (!holds(t, u)) continue;
          const float add = merged[t].add;
          float4 x{add * o[t][u].x, add * o[t][u].y, add * o[t][u].z, add * o[t][u].w};
          add_product(x, merged[t].keep, old[t][u]);
          *reinterpret_cast<float4*>(to + (lane_row + 4 * t) * dv + (column + 8 * u) * 4) = x;
          if (kPaper || last_visit)
            counter.wrote(Tensor::O, 16);
          else
            counter.wrote(Tensor::Otmp, 16);
        }
      }
      // HBM write: l and m [Br] (paper), LSE [Br] (released): lane r has row r, from the eight lanes that hold it
      RowStatistics now;
#pragma unroll
      for (int t = 0; t < kRows; ++t) {
        const int holder = lane % 4 * 8;
        const RowStatistics x{__shfl_sync(0xffffffffu, merged[t].now.m, holder),
                              __shfl_sync(0xffffffffu, merged[t].now.l, holder)};
        if (lane / 4 == t) now = x;
      }
      if (owns_row) write_statistics<kVariant>(a, first_row + warp_row + lane, now, counter);
    }
  }
  counter.flush(a.byte_counters);
}

template <class Tile, FlashV1Variant kVariant>
void launch_variant(const Call& call) {
  const AttentionArgs& a = call.args;
  const auto kernel =
      call.counted ? flash_v1_fp32_kernel<Tile, kVariant, true> : flash_v1_fp32_kernel<Tile, kVariant, false>;
  allow_smem(call, reinterpret_cast<const void*>(kernel), Tile::kSmemBytes, "flash_v1 in fp32");
  kernel<<<grid_of(std::int64_t{a.batch} * a.num_heads), Tile::kThreads, Tile::kSmemBytes, call.stream>>>(a);
  check_launch("flash_v1 in fp32");
}

}  // namespace

void launch_flash_v1_fp32(const Call& call) {
  with_flash_v1_tile(Dtype::fp32, call.args.head_dim, call.args.head_dim_v, [&](auto tile) {
    using Tile = decltype(tile);
    if constexpr (Tile::kElementBytes == 4) {
      call.plan.variant == FlashV1Variant::paper ? launch_variant<Tile, FlashV1Variant::paper>(call)
                                                 : launch_variant<Tile, FlashV1Variant::released>(call);
    }
  });
}

}  // namespace hbmscope::kernels
