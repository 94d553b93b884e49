// Idea:    three kernels: S = Q K^T goes to HBM, softmax takes it from there and writes P, O = P V reads P back
// Reads:   Q = B*H*ceil(Nk/Bc)*Nq*d*e; K = B*H*ceil(Nq/Br)*Nk*d*e; S = B*H*Nq*Nk*e;
//          P = B*H*ceil(dv/Bc)*Nq*Nk*e; V = B*H*ceil(Nq/Br)*Nk*dv*e
// Writes:  S = B*H*Nq*Nk*e; P = B*H*Nq*Nk*e; O = B*H*Nq*dv*e
// On chip: 3*(Br+Bc)*64*e
// Costs:   2*B*H*ceil(Nq/Br)*Br*(ceil(Nk/Bc)*Bc*ceil(d/64)*64 + ceil(Nk/64)*64*ceil(dv/64)*64)
//
// FlashAttention (arXiv 2205.14135), Algorithm 0. This file holds the pipeline and its two products on tensor cores,
// each CTA making one tile of Br x Bc elements of S or O from operands that it fetches itself. Hopper has faster ones
// in naive_hopper.cu; the softmax between them is naive_softmax.cu, and fp32 products are naive_fp32.cu. Every tile of
// S is written, masked or not: S is the plain product, rounded to its dtype, and the softmax scales and masks it. A row
// of S or P is padded to a multiple of 16 elements; the padding is neither written nor read.
#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "kernels/gemm.cuh"
#include "kernels/naive.hpp"
#include "kernels/tensor_map.hpp"

namespace hbmscope::kernels {
namespace {

constexpr int kBr = 128, kBc = 128;              // the tile of both products
using QkTile = GemmTile<kBr, kBc, 4, 2, 3>;      // up to d = 128: both operands lie in SMEM whole
using WideQkTile = GemmTile<kBr, kBc, 4, 3, 2>;  // beyond
using PvTile = GemmTile<kBr, kBc, 4, 3, 2>;
using NarrowPvTile = GemmTile<kBr, 64, 4, 3, 3>;  // where O is no wider than that

/// The counters take registers that the timed kernel of three CTAs an SM has not got.
template <class Tile, bool kCounted>
constexpr int kCtasPerSm = kCounted ? std::min(Tile::kCtasPerSm, 2) : Tile::kCtasPerSm;

template <class T, class Tile, bool kCounted>
__global__ void __launch_bounds__(Tile::kThreads, kCtasPerSm<Tile, kCounted>)
    qk_kernel(const __grid_constant__ AttentionArgs a) {
  if constexpr (kHopper) return;  // naive_hopper.cu has the products there
  constexpr int kDepth = Tile::kDepth;
  extern __shared__ __align__(128) unsigned char smem_bytes[];
  const std::uint32_t smem = (smem_address(smem_bytes) + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;

  ByteCounter<kCounted> counter;
  const TilePlace at = score_tile<sizeof(T)>(a, blockIdx.x, Tile::kRows, Tile::kColumns);
  const int d = a.head_dim, q_first = at.row * Tile::kRows, k_first = at.column * Tile::kColumns;
  const int q_rows = a.seqlen_q - q_first, k_rows = a.seqlen_kv - k_first;  // as many or more: whole
  const T* q = a.get<const T>(Tensor::Q) + head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, d) +
               std::int64_t{q_first} * d;
  const T* k = a.get<const T>(Tensor::K) +
               head_offset(at.batch, kv_head_of(a, at.head), a.num_kv_heads, a.seqlen_kv, d) +
               std::int64_t{k_first} * d;

  using Scores = MmaProduct<T, Tile, OperandB::by_column>;
  Scores scores(Tile::kColumns);
  multiply_slices(scores, smem, static_cast<int>(ceil_div(d, kDepth)),
                  [&](int slice, std::uint32_t q_slice, std::uint32_t k_slice) {
                    // HBM read: Q and K tiles, 64 of their d columns
                    const int x = slice * kDepth;
                    load_operand_a<Tile, Reuse::soon>(q_slice, q + x, d, q_rows, d - x, Tensor::Q, counter);
                    Scores::load_operand_b(k_slice, k + x, d, k_rows, d - x, Tensor::K, counter);
                  });

  __syncthreads();  // all warps are done with the slices
  scores.stage(smem);
  __syncthreads();
  // HBM write: S tile [Br, Bc]
  T* s = a.get<T>(Tensor::S) + head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, a.score_stride) +
         std::int64_t{q_first} * a.score_stride + k_first;
  Scores::store(s, a.score_stride, q_rows, k_rows, smem, Tensor::S, counter);
  counter.flush(a.byte_counters);
}

template <class T, class Tile, bool kCounted>
__global__ void __launch_bounds__(Tile::kThreads, kCtasPerSm<Tile, kCounted>)
    pv_kernel(const __grid_constant__ AttentionArgs a) {
  if constexpr (kHopper) return;
  constexpr int kDepth = Tile::kDepth;
  extern __shared__ __align__(128) unsigned char smem_bytes[];
  const std::uint32_t smem = (smem_address(smem_bytes) + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;

  ByteCounter<kCounted> counter;
  const TilePlace at = output_tile(a, blockIdx.x, Tile::kRows, Tile::kColumns);
  const int dv = a.head_dim_v, q_first = at.row * Tile::kRows, x_first = at.column * Tile::kColumns;
  const int q_rows = a.seqlen_q - q_first, columns = dv - x_first;
  const T* p = a.get<const T>(Tensor::P) + head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, a.score_stride) +
               std::int64_t{q_first} * a.score_stride;
  const T* v = a.get<const T>(Tensor::V) +
               head_offset(at.batch, kv_head_of(a, at.head), a.num_kv_heads, a.seqlen_kv, dv) + x_first;

  using Output = MmaProduct<T, Tile, OperandB::by_depth>;
  Output output(columns);
  multiply_slices(output, smem, static_cast<int>(ceil_div(a.seqlen_kv, kDepth)),
                  [&](int slice, std::uint32_t p_slice, std::uint32_t v_slice) {
                    // HBM read: P tile [Br, 64] and V tile [64, Bc]
                    const int c = slice * kDepth, keys = a.seqlen_kv - c;
                    load_operand_a<Tile, Reuse::none>(p_slice, p + c, a.score_stride, q_rows, keys, Tensor::P, counter);
                    Output::load_operand_b(v_slice, v + std::int64_t{c} * dv, dv, columns, keys, Tensor::V, counter);
                  });

  __syncthreads();  // all warps are done with the slices
  output.stage(smem);
  __syncthreads();
  // HBM write: O tile [Br, Bc]
  T* o = a.get<T>(Tensor::O) + head_offset(at.batch, at.head, a.num_heads, a.seqlen_q, dv) +
         std::int64_t{q_first} * dv + x_first;
  Output::store(o, dv, q_rows, columns, smem, Tensor::O, counter);
  counter.flush(a.byte_counters);
}

/// A CTA for each tile of the result, which has `columns` columns.
template <class Tile, class Kernel>
void launch_tiles(Kernel* kernel, const Call& call, std::int64_t columns, const char* what) {
  const AttentionArgs& a = call.args;
  const auto* address = reinterpret_cast<const void*>(kernel);
  allow_smem(call, address, Tile::kSmem, what);
  cudaFuncSetAttribute(address, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  const std::int64_t ctas =
      ceil_div(a.seqlen_q, Tile::kRows) * ceil_div(columns, Tile::kColumns) * a.num_heads * a.batch;
  kernel<<<grid_of(ctas), Tile::kThreads, Tile::kSmem, call.stream>>>(a);
  check_launch(what);
}

template <class T, class Tile>
void launch_qk_of(const Call& call) {
  launch_tiles<Tile>(call.counted ? qk_kernel<T, Tile, true> : qk_kernel<T, Tile, false>, call, call.args.seqlen_kv,
                     "naive qk");
}
template <class T, class Tile>
void launch_pv_of(const Call& call) {
  launch_tiles<Tile>(call.counted ? pv_kernel<T, Tile, true> : pv_kernel<T, Tile, false>, call, call.args.head_dim_v,
                     "naive pv");
}

void launch_qk(const Call& call) {
  if (call.dtype == Dtype::fp32) return launch_naive_qk_fp32(call);
  if (on_hopper()) return launch_naive_qk_hopper(call);
  if (call.args.head_dim <= QkTile::kStages * QkTile::kDepth) {
    call.dtype == Dtype::bf16 ? launch_qk_of<BFloat16, QkTile>(call) : launch_qk_of<Half, QkTile>(call);
  } else {
    call.dtype == Dtype::bf16 ? launch_qk_of<BFloat16, WideQkTile>(call) : launch_qk_of<Half, WideQkTile>(call);
  }
}
void launch_pv(const Call& call) {
  if (call.dtype == Dtype::fp32) return launch_naive_pv_fp32(call);
  if (on_hopper()) return launch_naive_pv_hopper(call);
  if (call.args.head_dim_v <= NarrowPvTile::kColumns) {
    call.dtype == Dtype::bf16 ? launch_pv_of<BFloat16, NarrowPvTile>(call) : launch_pv_of<Half, NarrowPvTile>(call);
  } else {
    call.dtype == Dtype::bf16 ? launch_pv_of<BFloat16, PvTile>(call) : launch_pv_of<Half, PvTile>(call);
  }
}

TilePlan plan(const AttentionShape& s, const TilePlan& wanted) {
  TilePlan p = naive_plan("naive", s, wanted);
  constexpr std::array<std::int64_t, 2> compiled{kBr, kBc};
  if (p.gemm_tile.value_or(compiled) != compiled) {
    throw Error(ErrorKind::usage,
                "--gemm-tile " + std::to_string((*p.gemm_tile)[0]) + "," + std::to_string((*p.gemm_tile)[1]) +
                    ": the GPU kernels of naive are compiled for " + std::to_string(compiled[0]) + "," +
                    std::to_string(compiled[1]),
                "leave it out, or take --engine sim for other tiles");
  }
  p.gemm_tile = compiled;
  return p;
}

std::vector<Stage> stages(const AttentionShape&, const TilePlan&) {
  return {{"qk", launch_qk}, {"softmax", launch_naive_softmax}, {"pv", launch_pv}};
}

}  // namespace

std::string naive_unsupported(const AttentionShape& s) {
  if (s.dtype == Dtype::fp8) return std::string(kFp8Elsewhere);
  return unsupported_shape(s);
}

TilePlan naive_plan(std::string_view pipeline, const AttentionShape& s, const TilePlan& wanted) {
  for (const auto& [asked, option] :
       {std::pair{wanted.scale_pass, "--scale-pass"}, std::pair{wanted.mask_pass, "--mask-pass"},
        std::pair{wanted.dropout, "--dropout"}, std::pair{wanted.fp32_scores, "--fp32-scores"},
        std::pair{wanted.repeat_kv, "--repeat-kv"}}) {
    if (!asked) continue;
    throw Error(ErrorKind::usage,
                std::string(option) + ": the GPU pipeline " + std::string(pipeline) + " has no kernel for it",
                "leave it out, or take --engine sim");
  }
  if (wanted.softmax_reads > 2) {
    throw Error(ErrorKind::usage,
                "--softmax-reads " + std::to_string(wanted.softmax_reads) + ": the softmax kernel of " +
                    std::string(pipeline) + " reads a row once, or twice where it does not fit on chip",
                "leave it out, or take --engine sim");
  }
  TilePlan p = wanted;
  p.softmax_reads = std::max(p.softmax_reads, naive_softmax_reads(s));
  return p;
}

std::vector<Temporary> naive_temporaries(const AttentionShape& s, const TilePlan&) {
  const Bytes scores =
      Count(s.batch) *
      (Count(s.num_heads) * (Count(s.seqlen_q) * (Count(score_stride(s.seqlen_kv)) * Bytes(s.element_bytes()))));
  return {{Tensor::S, scores}, {Tensor::P, scores}};
}

extern const Pipeline kPipeline_naive{"naive",           "naive", "kernels/naive.cu", naive_unsupported, plan,
                                      naive_temporaries, stages};

}  // namespace hbmscope::kernels
