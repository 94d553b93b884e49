#pragma once
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"

/// Online softmax for one query, small enough to follow by hand (Milakov and Gimelshein, arXiv 1805.02867;
/// FlashAttention, arXiv 2205.14135; FlashAttention-2, arXiv 2307.08691).
namespace hbmscope {

using Vector = std::vector<double>;  ///< one value row [head_dim_v], or what is added up from them

/// The scores of one query in blocks, and one value row for each score.
struct SoftmaxInput {
  std::vector<Vector> blocks;  ///< scores, -inf where a key is masked; no block is empty
  std::vector<Vector> values;  ///< finite; as many rows as scores, all of one width of at least 1
};

/// What every operation's result is rounded to: a dtype, or nothing for fp64.
using Precision = std::optional<Dtype>;

/// After one block of the unnormalised form, FlashAttention-2's:
/// l = rescale l + sum e^(s - m), o = rescale o + sum e^(s - m) v, and one division at the very end.
struct UnnormalisedStep {
  double m = 0;        ///< greatest score so far
  double rescale = 0;  ///< e^(m before - m); 0 where nothing stood before, 1 where the maximum stays
  double l = 0;        ///< sum of e^(s - m) so far
  Vector o;            ///< sum of e^(s - m) v so far
};

/// One block on its own: its softmax, as a split of the keys computes it.
struct BlockSoftmax {
  double m = 0;
  double l = 0;
  Vector o;        ///< normalised
  double lse = 0;  ///< m + ln l; -inf where every score is masked
};

/// After one block of the normalised form, that of FlashAttention-1 and of split-KV: o is a softmax at every step, a
/// mean of what stood before and of the block, with weights e^(LSE - LSE of both).
struct NormalisedStep {
  BlockSoftmax block;
  double weight_before = 0;  ///< of o so far; the two weights sum to 1 (both 0 while every score is masked)
  double weight_block = 0;   ///< of the block's own o
  BlockSoftmax merged;
};

struct SoftmaxResult {
  std::vector<UnnormalisedStep> unnormalised;
  Vector o_unnormalised;  ///< last o / last l
  std::vector<NormalisedStep> normalised;
  BlockSoftmax plain;                   ///< softmax over all scores at once
  Vector probabilities;                 ///< of `plain`
  Vector o_unmerged;                    ///< wrong on purpose: each block's own softmax, simply put side by side
  double unmerged_probability_sum = 0;  ///< the number of blocks with a live score, where it should be 1
  double lse = 0;                       ///< of the unnormalised form
};

/// Where every score is masked, l = 0, o = 0 and LSE = -inf. Throws an Error (kind usage) that names --scores or
/// --values where the input breaks a rule above, or where it or a sum leaves the range of the precision.
SoftmaxResult online_softmax(const SoftmaxInput& input, Precision precision);

}  // namespace hbmscope
