#pragma once
#include "kernels/tile.cuh"

/// The steps of attention on a warp's share of a tile: kM blocks of 16 query rows, kBkv keys. Scores and outputs are
/// accumulators of multiply_add: [16-row block][8-column block][4], where lane l has rows l/4 (elements 0, 1) and
/// l/4 + 8 (elements 2, 3).
namespace hbmscope::kernels {

/// Keys that any query of a tile sees, and keys that all of them see.
struct KeyRange {
  int first, last;          ///< seen by some; empty where first > last
  int all_first, all_last;  ///< seen by each
  __device__ bool empty() const { return first > last; }
  __device__ bool all_visible(int c_first, int c_last) const { return c_first >= all_first && c_last <= all_last; }
};
/// Places stay below 2^28 and a band's edges within 2^29 (make_args): their sums fit.
__device__ inline KeyRange visible_keys(const AttentionArgs& a, int q_first, int q_last) {
  const auto clamp = [&](int c) { return max(-1, min(c, a.seqlen_kv)); };
  return {max(0, clamp(q_first + a.band_low)), min(a.seqlen_kv - 1, clamp(q_last + a.band_high)),
          clamp(q_last + a.band_low), min(a.seqlen_kv - 1, clamp(q_first + a.band_high))};
}

/// Running maximum, in units of log2 e, and sum of each row, per lane: [16-row block][row l/4, row l/4 + 8]. The sum is
/// of this lane's columns only until finish_rows. Before the first key m is the least finite number: hidden scores are
/// -inf, and 2^(-inf - m) is 0 for it, where -inf - -inf would be NaN.
template <int kM>
struct RowState {
  float m[kM][2], l[kM][2];
  __device__ RowState() {
#pragma unroll
    for (int i = 0; i < kM; ++i) m[i][0] = m[i][1] = kLeastFinite, l[i][0] = l[i][1] = 0;
  }
};

/// The warp's rows of Q as operand A: read from SMEM anew for each tile of keys, one step before they are multiplied.
template <int kM, int kD>
struct QInSmem {
  std::uint32_t at;  ///< block_address of the first block
  std::uint32_t fragments[2][kM][4];
  __device__ explicit QInSmem(std::uint32_t address) : at(address) {}
  __device__ void begin() {
    forget(at);
    prefetch(0);
  }
  __device__ void prefetch(int step) {
#pragma unroll
    for (int i = 0; i < kM; ++i) {
      load_matrices(fragments[step & 1][i], to_the_right(at, 16 * step) + i * (16 * kD * 2));
    }
  }
  __device__ const std::uint32_t (&of(int step) const)[kM][4] {
    return fragments[step & 1];
  }
};
/// s += Q K^T over the warp's rows; `k_at` is block_address_b of K's first block. A tile narrower than compiled ends
/// after ceil(d / 16) steps.
template <class T, int kM, int kBkv, int kD, bool kExact>
__device__ inline void multiply_qk(float (&s)[kM][kBkv / 8][4], QInSmem<kM, kD>& q, std::uint32_t k_at, int d) {
  constexpr std::uint32_t kRows16 = 16 * kD * 2;  // bytes
  constexpr int kSteps = kD / 16, kBlocks = kBkv / 16;
  std::uint32_t k[2][4];
  const auto load_k = [&](int step, int block) {
    load_matrices(k[(step * kBlocks + block) & 1], to_the_right(k_at, 16 * step) + block * kRows16);
  };
  q.begin();
  load_k(0, 0);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    if (!kExact && 16 * step >= d) break;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      if (block + 1 < kBlocks) {
        load_k(step, block + 1);
      } else if (step + 1 < kSteps) {
        load_k(step + 1, 0);
      }
      if (block == kBlocks / 2 && step + 1 < kSteps) q.prefetch(step + 1);
      const std::uint32_t(&b)[4] = k[(step * kBlocks + block) & 1];
#pragma unroll
      for (int i = 0; i < kM; ++i) {
        multiply_add<T>(s[i][2 * block], q.of(step)[i], b[0], b[1]);
        multiply_add<T>(s[i][2 * block + 1], q.of(step)[i], b[2], b[3]);
      }
    }
  }
}

/// Hidden scores become -inf, by assignment: whatever stood there, NaN too, is gone.
template <int kM, int kBkv>
__device__ inline void mask_scores(float (&s)[kM][kBkv / 8][4], const AttentionArgs& a, int q_first, int c_first) {
  const int lane = lane_now();
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int q = q_first + 16 * i + 8 * half + lane / 4;
      const KeyRange seen = visible_keys(a, q, q);
      // Counted from this lane's first column, so that what follows compares with constants.
      const int base = c_first + 2 * (lane % 4), first = seen.first - base, last = seen.last - base;
#pragma unroll
      for (int n = 0; n < kBkv / 8; ++n) {
#pragma unroll
        for (int x = 0; x < 2; ++x) {
          if (8 * n + x < first || 8 * n + x > last) s[i][n][2 * half + x] = kMinusInfinity;
        }
      }
    }
  }
}

/// A maximum as statistics in HBM have it: natural, and -inf for a row without keys.
__device__ inline float natural_maximum(float m) {
  return m == kLeastFinite ? kMinusInfinity : m * kLn2;
}

/// What O and l of each row are to be multiplied with, since its maximum moved.
template <int kM>
struct Rescale {
  float factor[kM][2];
  bool any;  ///< of the warp's rows
};

/// m = max(m, row maximum of s / sqrt(d) - headroom): exponentials are then up to 2^headroom, and l is
/// as much larger.
template <int kM, int kN>
__device__ inline Rescale<kM> update_maximum(RowState<kM>& row, const float (&s)[kM][kN][4], float to_log2,
                                             float headroom = 0) {
  Rescale<kM> r;
  bool moved = false;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = s[i][0][2 * half];
#pragma unroll
      for (int n = 0; n < kN; ++n) most = fmaxf(most, fmaxf(s[i][n][2 * half], s[i][n][2 * half + 1]));
      const float before = row.m[i][half], now = fmaxf(before, fmaf(quad_max(most), to_log2, -headroom));
      row.m[i][half] = now;
      moved |= now > before;
      r.factor[i][half] = exp2_fast(before - now);  // 1 where it has not moved, 0 before the first key
    }
  }
  r.any = __any_sync(0xffffffffu, moved);
  return r;
}

/// The maximum of most rows is found in the first few tiles; after that a warp has nothing to do here.
template <int kM, int kN>
__device__ inline void rescale_output(float (&o)[kM][kN][4], const Rescale<kM>& r) {
  if (!r.any) return;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        o[i][n][2 * half] *= r.factor[i][half];
        o[i][n][2 * half + 1] *= r.factor[i][half];
      }
    }
  }
}
template <int kM>
__device__ inline void rescale_sums(RowState<kM>& row, const Rescale<kM>& r) {
#pragma unroll
  for (int i = 0; i < kM; ++i) row.l[i][0] *= r.factor[i][0], row.l[i][1] *= r.factor[i][1];
}
template <int kM, int kN>
__device__ inline void rescale(RowState<kM>& row, float (&o)[kM][kN][4], const Rescale<kM>& r) {
  if (!r.any) return;
  rescale_sums(row, r);
  rescale_output(o, r);
}

/// s = exp(s - m) in place; l += row sums of it.
template <int kM, int kN>
__device__ inline void exponentiate(float (&s)[kM][kN][4], RowState<kM>& row, float to_log2) {
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int x = 2 * half; x < 2 * half + 2; ++x) {
          s[i][n][x] = exp2_fast(fmaf(s[i][n][x], to_log2, -row.m[i][half]));
          sum += s[i][n][x];
        }
      }
      row.l[i][half] += sum;
    }
  }
}

/// Puts two neighbouring elements of P, of the nth block of eight keys and of row l/4 or l/4 + 8 (`half`), where
/// operand A of the next product has them. The accumulators of two blocks are 16 keys of it in 16 bits. Those of four
/// are 32 keys of it in fp8, though in another order, which V then has to have, too: key 2 (l%4) of each block and the
/// next.
template <class T, int kSteps>
__device__ inline void put_p(std::uint32_t (&p)[kSteps][4], int n, int half, float p0, float p1) {
  const std::uint32_t two = pack<T>(p0, p1);
  if constexpr (sizeof(T) == 2) {
    p[n / 2][n % 2 * 2 + half] = two;
  } else {
    std::uint32_t& word = p[n / 4][n % 4 / 2 * 2 + half];
    word = n % 2 == 0 ? two : word | two << 16;
  }
}

/// P = exp(s - m) as operand A of the next product; `sum` grows by those of the lane's columns.
template <class T, int kBkv>
__device__ inline void exponentiate_to_p(std::uint32_t (&p)[kBkv * sizeof(T) / 32][4],
                                         const float (&s)[1][kBkv / 8][4],
                                         const float (&m)[2], float (&sum)[2], float to_log2) {
#pragma unroll
  for (int n = 0; n < kBkv / 8; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float p0 = exp2_fast(fmaf(s[0][n][2 * half], to_log2, -m[half]));
      const float p1 = exp2_fast(fmaf(s[0][n][2 * half + 1], to_log2, -m[half]));
      sum[half] += p0 + p1;
      put_p<T>(p, n, half, p0, p1);
    }
  }
}

/// P = exp(s - m), 16 keys at a time; l += row sums of P; o += P V, `v_at` being block_address of V's first block.
/// Accumulators of two neighbouring 8-column blocks are already operand A of the next product.
template <class T, int kM, int kBkv, int kD, bool kExact>
__device__ inline void multiply_pv(float (&o)[kM][kD / 8][4], float (&s)[kM][kBkv / 8][4], RowState<kM>& row,
                                   std::uint32_t v_at, int dv, float to_log2) {
  constexpr std::uint32_t kRows16 = 16 * kD * 2;  // bytes
  constexpr int kSteps = kBkv / 16, kBlocks = kD / 16;
  std::uint32_t v[2][4];
  const auto load_v = [&](int step, int block) {
    load_matrices_transposed(v[(step * kBlocks + block) & 1], to_the_right(v_at, 16 * block) + step * kRows16);
  };
  load_v(0, 0);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    std::uint32_t p[kM][4];
#pragma unroll
    for (int i = 0; i < kM; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {  // rows l/4 then l/4 + 8 of the first eight keys, then of the next
        const float(&block)[4] = s[i][2 * step + part / 2];
        const int half = part % 2;
        const float p0 = exp2_fast(fmaf(block[2 * half], to_log2, -row.m[i][half]));
        const float p1 = exp2_fast(fmaf(block[2 * half + 1], to_log2, -row.m[i][half]));
        row.l[i][half] += p0 + p1;
        p[i][part] = pack<T>(p0, p1);
      }
    }
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      if (block + 1 < kBlocks) {
        load_v(step, block + 1);
      } else if (step + 1 < kSteps) {
        load_v(step + 1, 0);
      }
      if (!kExact && 16 * block >= dv) continue;
      const std::uint32_t(&b)[4] = v[(step * kBlocks + block) & 1];
#pragma unroll
      for (int i = 0; i < kM; ++i) {
        multiply_add<T>(o[i][2 * block], p[i], b[0], b[1]);
        multiply_add<T>(o[i][2 * block + 1], p[i], b[2], b[3]);
      }
    }
  }
}

/// Sums l over the lanes of a row and divides O by it, times `scale`; a row without keys keeps O = 0.
template <int kM, int kN>
__device__ inline void finish_rows(RowState<kM>& row, float (&o)[kM][kN][4], float scale = 1) {
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      row.l[i][half] = quad_sum(row.l[i][half]);
      const float inverse = row.l[i][half] == 0 ? 0.0f : scale / row.l[i][half];
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        o[i][n][2 * half] *= inverse;
        o[i][n][2 * half + 1] *= inverse;
      }
    }
  }
}

/// Writes the warp's rows of O, 16 bytes a lane, through its own rows of a [rows, kD] tile in SMEM.
template <class T, int kM, int kD, class Counter>
__device__ inline void store_rows(T* to, const float (&o)[kM][kD / 8][4], std::uint32_t tile, int warp_row, int rows,
                                  int width, Tensor tensor, Counter& counter) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = warp_row + 16 * i + 8 * half + lane / 4;
        const std::uint32_t at = tile + tile_offset<kD>(row, n) + 4 * (lane % 4);
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(pack<T>(o[i][n][2 * half], o[i][n][2 * half + 1]))
                     : "memory");
      }
    }
  }
  __syncwarp();
  constexpr int kChunks = kD / 8;
#pragma unroll
  for (int n = lane; n < 16 * kM * kChunks; n += kWarpSize) {
    const int row = warp_row + n / kChunks, chunk = n % kChunks;
    if (row >= rows || chunk * 8 >= width) continue;
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(tile + tile_offset<kD>(row, chunk))
                 : "memory");
    *reinterpret_cast<uint4*>(to + std::int64_t{row} * width + chunk * 8) = x;
    counter.wrote(tensor, 16);
  }
}

/// The same without SMEM: the four lanes that share a row trade their pairs of columns until each has 16 bytes of it.
template <class T, int kBlocks, class Counter>
__device__ inline void store_rows_by_quads(T* to, const float (&o)[kBlocks][4], int warp_row, int rows, int width,
                                           Tensor tensor, Counter& counter) {
  constexpr int kBlocksAWord = 2 / static_cast<int>(sizeof(T));  // of a lane's
  static_assert(kBlocks % (4 * kBlocksAWord) == 0, "a quad stores 64 bytes of a row at a time");
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize, in_quad = lane % 4;
  const auto trade = [&](std::uint32_t& low, std::uint32_t& high, int distance) {
    const bool upper = (in_quad & distance) != 0;
    const std::uint32_t got = __shfl_xor_sync(0xffffffffu, upper ? low : high, distance);
    (upper ? low : high) = got;
  };
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp_row + 8 * half + lane / 4;
    T* of_row = to + std::int64_t{row} * width;
#pragma unroll
    for (int n = 0; n < kBlocks; n += 4 * kBlocksAWord) {
      std::uint32_t words[4] = {};
#pragma unroll
      for (int block = 0; block < 4 * kBlocksAWord; ++block) {
        const std::uint32_t two = pack<T>(o[n + block][2 * half], o[n + block][2 * half + 1]);
        words[block / kBlocksAWord] |= two << 16 * (block % kBlocksAWord);
      }
      trade(words[0], words[1], 1);
      trade(words[2], words[3], 1);
      trade(words[0], words[2], 2);
      trade(words[1], words[3], 2);
      if constexpr (kBlocksAWord == 2) {  // lower halves are one block, upper ones the next
        const std::uint32_t got[4] = {words[0], words[1], words[2], words[3]};
#pragma unroll
        for (int block = 0; block < 2; ++block) {
          words[2 * block] = __byte_perm(got[0], got[1], block == 0 ? 0x5410 : 0x7632);
          words[2 * block + 1] = __byte_perm(got[2], got[3], block == 0 ? 0x5410 : 0x7632);
        }
      }
      const int column = 8 * (n + kBlocksAWord * in_quad);
      const bool there = row < rows && column < width;
      // A branch here would keep the compiler from trading the next words meanwhile.
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0; @p st.global.v4.b32 [%1], {%2, %3, %4, %5}; }" ::"r"(
                       static_cast<int>(there)),
                   "l"(of_row + column), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]));
      if (there) counter.wrote(tensor, 16);
    }
  }
}

/// LSE = m + ln l, natural; -inf for a row without keys.
template <int kM, class Counter>
__device__ inline void store_lse(float* to, const RowState<kM>& row, int warp_row, int rows, Counter& counter) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  if (lane % 4 != 0) return;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = warp_row + 16 * i + 8 * half + lane / 4;
      if (r >= rows) continue;
      to[r] = row.l[i][half] == 0 ? kMinusInfinity : (row.m[i][half] + log2f(row.l[i][half])) * kLn2;
      counter.wrote(Tensor::LSE, 4);
    }
  }
}

}  // namespace hbmscope::kernels
