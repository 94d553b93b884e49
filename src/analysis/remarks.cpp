#include "analysis/remarks.hpp"

#include <algorithm>
#include <initializer_list>

#include "model/plan_choice.hpp"

namespace hbmscope {
namespace {

constexpr std::string_view kClusters = "2 ceil(Nq/(C Br)) Nk d e + 2 Nq d e + 4 Nq";
constexpr std::string_view kTiledNaive = "4 N^2 e + N d e (ceil(N/bn) + 2 ceil(N/bm) + 1) + N^2 e (ceil(d/bn) - 1)";

bool plain_shape(const AttentionShape& s) {
  return s.mask.kind() == "none" && s.kv_lengths.empty() && s.head_dim == s.head_dim_v && s.num_heads == s.num_kv_heads;
}

/// Does the plan take the algorithm as its paper has it, without passes, copies or variants beside?
bool plain_plan(const Algorithm& a, const TilePlan& p) {
  if (a.name == "naive" || a.name == "naive_bwd") {
    return !p.scale_pass && !p.mask_pass && !p.dropout && !p.fp32_scores && !p.repeat_kv && p.softmax_reads == 1;
  }
  return p.variant == FlashV1Variant::paper && p.atomics == Atomics::write_only;
}

/// Are there fewer splits with keys than splits?
bool has_empty_splits(const AttentionShape& s, const TilePlan& p) {
  const std::int64_t tiles = (s.seqlen_kv + p.block_kv - 1) / p.block_kv;
  const std::int64_t tiles_per_split = (tiles + p.num_kv_splits - 1) / p.num_kv_splits;
  return (tiles + tiles_per_split - 1) / tiles_per_split != p.num_kv_splits;
}

/// "naive, flash_v1 and flash_v2"
std::string in_a_row(const std::vector<std::string_view>& names) {
  std::string words;
  for (std::size_t i = 0; i < names.size(); ++i)
    words += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + std::string(names[i]);
  return words;
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
  if (cluster_of(plan) > 1 && (a.name == "flash_v2" || a.name == "flash_v3")) return {kClusters, exact};
  return {plan.gemm_tile && a.name == "naive" ? kTiledNaive : a.formula, exact};
}

std::optional<L2Fit> l2_fit(const RunResult& result, Pass pass) {
  if (result.l2_effective.value() == 0) return std::nullopt;
  const bool backward = pass == Pass::backward;
  const AlgorithmResult* naive = result.find(backward ? "naive_bwd" : "naive");
  const std::vector<Tensor> squares =
      backward ? std::vector{Tensor::P, Tensor::dP, Tensor::dS} : std::vector{Tensor::S, Tensor::P};
  L2Fit fit;
  if (naive != nullptr) {
    Bytes sum;
    for (const Tensor t : squares) sum += tensor_bytes(t, result.request.shape, naive->plan);
    fit.squares = sum;
    fit.squares_fit = sum <= result.l2_effective;
  }
  for (const AlgorithmResult& a : result.algorithms) {
    if (a.algorithm->pass == pass && a.kv_in_flight) fit.kv = a.kv_in_flight;
  }
  fit.kv_fits = fit.kv && *fit.kv <= result.l2_effective;
  return fit;
}

NaiveBulk naive_bulk(const AlgorithmResult& naive) {
  const TrafficEntry* hbm = naive.at(Boundary::l2_hbm);
  if (hbm == nullptr || !hbm->traffic) return NaiveBulk::squares;
  const Traffic& traffic = *hbm->traffic;
  const auto most = [&](std::initializer_list<Tensor> tensors) {
    Bytes sum;
    for (const Tensor t : tensors) sum += traffic[t].total();
    return sum.as_double() > traffic.total().as_double() / 2;
  };
  if (most({Tensor::K, Tensor::V, Tensor::Kx, Tensor::Vx})) return NaiveBulk::kv;
  return most({Tensor::Q, Tensor::O}) ? NaiveBulk::rows : NaiveBulk::squares;
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
  if (const std::optional<L2Fit> fit = l2_fit(result, Pass::forward); fit && fit->squares_fit) {
    say("L2-resident: S and P of all heads together fit the L2, so naive reads them there, and what fusing saves "
        "through "
        "HBM is little more than writing them");
  }
  std::vector<std::string_view> by_launches;
  for (const AlgorithmResult& a : result.algorithms) {
    if (a.limit == TimeLimit::launches) by_launches.push_back(a.algorithm->name);
  }
  if (!by_launches.empty())
    say("launches are more than half of the predicted time of " + in_a_row(by_launches) +
        ": there, fewer kernels save more than fewer bytes");
  for (const AlgorithmResult& a : result.algorithms) {
    if (const std::string_view needs = lacking(*a.algorithm, a.plan, gpu); !needs.empty()) {
      say(std::string(a.algorithm->name) + (a.algorithm->name == "flash_v3" ? "" : " with this plan") + " needs " +
          std::string(needs) + "; " + gpu.name + " (" + gpu.architecture +
          ") cannot run it, and its figures are a thought experiment");
    }
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
