#include "analysis/remarks.hpp"

#include <algorithm>

namespace hbmscope {
namespace {

constexpr std::string_view kTiledNaive = "4 N^2 e + N d e (ceil(N/bn) + 2 ceil(N/bm) + 1) + N^2 e (ceil(d/bn) - 1)";

bool plain_shape(const AttentionShape& s) {
  return s.mask.kind() == "none" && s.kv_lengths.empty() && s.head_dim == s.head_dim_v && s.num_heads == s.num_kv_heads;
}

/// Does the plan take the algorithm as its paper has it, without passes, copies or variants beside?
bool plain_plan(const Algorithm& a, const TilePlan& p) {
  if (a.name == "naive" || a.name == "naive_bwd") {
    return !p.scale_pass && !p.mask_pass && !p.dropout && !p.fp32_scores && !p.repeat_kv && p.softmax_reads == 1;
  }
  return p.variant == FlashV1Variant::paper && p.atomics == Atomics::write_only && p.cluster == 1;
}

/// Are there fewer splits with keys than splits?
bool has_empty_splits(const AttentionShape& s, const TilePlan& p) {
  const std::int64_t tiles = (s.seqlen_kv + p.block_kv - 1) / p.block_kv;
  const std::int64_t tiles_per_split = (tiles + p.num_kv_splits - 1) / p.num_kv_splits;
  return (tiles + tiles_per_split - 1) / tiles_per_split != p.num_kv_splits;
}

}  // namespace

PlainFormula plain_formula(const Algorithm& a, const AttentionShape& s, const TilePlan& plan) {
  if (!plain_plan(a, plan)) return {};
  // The naive formulas have one N.
  bool exact = plain_shape(s) && (!a.name.starts_with("naive") || s.seqlen_q == s.seqlen_kv);
  if (a.name == "split_kv") {
    if (plan.num_kv_splits == 1) return {algorithm("flash_v2").formula, exact};
    exact = exact && !has_empty_splits(s, plan);
  }
  return {plan.gemm_tile && a.name == "naive" ? kTiledNaive : a.formula, exact};
}

std::vector<std::string> warnings_of(const RunResult& result) {
  std::vector<std::string> warnings;
  const AttentionShape& s = result.request.shape;
  const GpuSpec& gpu = result.request.gpu;
  const auto say = [&](std::string text) { warnings.push_back(std::move(text)); };
  if (s.num_heads > 65535 || (s.num_heads > s.seqlen_q && s.seqlen_q > 1)) {
    say(std::to_string(s.num_heads) + " heads and only " + std::to_string(s.seqlen_q) +
        " queries: are heads and sequence length swapped?");
  }
  if (s.mask.kind() != "none" || !s.kv_lengths.empty()) {
    const std::int64_t offset = s.mask_offset();
    const bool hides_nothing =
        s.kv_lengths.empty() && s.mask.visible(0, s.seqlen_kv - 1, offset) && s.mask.visible(s.seqlen_q - 1, 0, offset);
    if (result.live_pairs.value() == 0) {
      say("no query sees any key: O is 0, LSE is -inf");
    } else if (s.mask.kind() == "causal" && s.seqlen_q > s.seqlen_kv && s.mask.alignment == Alignment::bottom_right) {
      say("the first " + std::to_string(s.seqlen_q - s.seqlen_kv) +
          " queries see no key: their O is 0, their LSE -inf");
    } else if (hides_nothing) {
      say("the mask hides nothing at this shape");
    }
  }
  if (const AlgorithmResult* naive = result.find("naive"); naive != nullptr && result.l2_effective.value() > 0) {
    const Bytes square = tensor_bytes(Tensor::S, s, naive->plan) + tensor_bytes(Tensor::P, s, naive->plan);
    if (square <= result.l2_effective)
      say("L2-resident: S and P together fit the L2, so fusing saves no HBM reads here; launches decide the time");
  }
  for (const AlgorithmResult& a : result.algorithms) {
    if (a.memory.peak_bytes > gpu.hbm_bytes) say(std::string(a.algorithm->name) + " does not fit this GPU's memory");
    if (a.exactness && a.exactness->nonfinite_scores + a.exactness->nonfinite_outputs > 0) {
      say(std::string(a.algorithm->name) + ": " + std::to_string(a.exactness->nonfinite_scores) + " scores overflow " +
          std::string(info(s.dtype).name));
    }
  }
  if (s.head_dim > 256 || s.head_dim_v > 256)
    say("no released FlashAttention kernel takes a head dim above 256; the model does");
  if (s.head_dim % 8 != 0 || s.head_dim_v % 8 != 0)
    say("released kernels want head dims that are multiples of 8, or pad them; the model counts them as they are");
  if (result.request.l2_warm)
    say("warm L2: the same kernels ran just before, so bytes may be below the compulsory ones");
  return warnings;
}

}  // namespace hbmscope
