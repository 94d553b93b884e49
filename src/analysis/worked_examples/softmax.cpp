#include <vector>

#include "analysis/worked_examples/parts.hpp"
#include "core/rounding.hpp"
#include "model/online_softmax.hpp"

// Four scores in two blocks, by hand; and sums that depend on their order.
namespace hbmscope::worked {
namespace {

using V = WorkedValues;
using Reals = std::vector<double>;

const SoftmaxInput& four_scores() {
  static const SoftmaxInput input{{{2, 1}, {3, 0}}, {{1}, {2}, {3}, {4}}};
  return input;
}
const SoftmaxResult& by_hand() {
  static const SoftmaxResult result = online_softmax(four_scores(), std::nullopt);
  return result;
}

/// e^(score - m) for every score of both blocks.
Reals weights(double m) {
  Reals all;
  for (const Vector& block : four_scores().blocks) {
    for (const double score : block) all.push_back(std::exp(score - m));
  }
  return all;
}

/// x after k decimals, for each.
Reals all_rounded(Reals values, int decimals) {
  for (double& x : values) x = rounded(x, decimals);
  return values;
}

/// (a + b) + c and a + (b + c), rounded to `dtype` after every addition. Sums of two such numbers of these magnitudes
/// are exact in binary32, so each is rounded once.
struct TwoSums {
  float b, pair, left, right;
};
TwoSums sums(float a, float b, float c, Dtype dtype) {
  const auto round = [&](float x) { return round_to(x, dtype); };
  const float pair = round(round(b) + round(c));
  return {round(b), pair, round(round(round(a) + round(b)) + round(c)), round(round(a) + pair)};
}
constexpr float kA = 1000.0F, kB = 0.2F;

constexpr WorkedEntry kEntries[] = {
    {"S0-06", "How are two blocks with normalised outputs merged?", Provenance::formula,
     [](V& v) {
       const BlockSoftmax& old = by_hand().normalised[0].block;
       const BlockSoftmax& block = by_hand().normalised[1].block;
       const BlockSoftmax& merged = by_hand().normalised[1].merged;
       v.add("mo", old.m);
       v.add("mb", block.m);
       v.add("lo", old.l);
       v.add("lb", block.l);
       v.add("oo", old.o[0]);
       v.add("ob", block.o[0]);
       v.add("m_new", merged.m);
       v.add("l_new", merged.l);
       v.add("o_new", merged.o[0]);
     },
     nullptr,
     "Outputs that are softmaxes at every step, as in the first paper and in split-KV; the unnormalised form (S1-21) "
     "gives the same."},
    {"S0-07", "Is (a + b) + c the same as a + (b + c) in fp16?", Provenance::formula,
     [](V& v) {
       const TwoSums s = sums(kA, kB, kB, Dtype::fp16);
       v.add("left", static_cast<double>(s.left));
       v.add("right", static_cast<double>(s.right));
     },
     nullptr, "1000, 0.2 and 0.2, rounded after every addition (S1-29 has the steps)."},
    {"S1-15", "What are the exponentials of 2, 1, 3, 0 and their sum?", Provenance::formula,
     [](V& v) {
       v.add("exps", weights(0));
       v.add("total", std::exp(by_hand().plain.lse));
     }},
    {"S1-16", "What is the softmax of 2, 1, 3, 0?", Provenance::formula,
     [](V& v) { v.add("p", by_hand().probabilities); }},
    {"S1-17", "Online softmax of 2, 1 | 3, 0: what stands after the first block?", Provenance::formula,
     [](V& v) {
       const UnnormalisedStep& step = by_hand().unnormalised[0];
       v.add("m", step.m);
       v.add("t", weights(step.m)[1]);
       v.add("l", step.l);
     }},
    {"S1-18", "What stands after the second block, when the maximum rises to 3?", Provenance::formula,
     [](V& v) {
       const UnnormalisedStep &before = by_hand().unnormalised[0], &step = by_hand().unnormalised[1];
       v.add("m", step.m);
       v.add("scale", step.rescale);
       v.add("old", before.l * step.rescale);
       v.add("e_m3", weights(step.m)[3]);
       v.add("new", by_hand().normalised[1].block.l);
       v.add("l", step.l);
     }},
    {"S1-19", "Which probabilities do the running m and l give?", Provenance::formula,
     [](V& v) {
       const UnnormalisedStep& last = by_hand().unnormalised[1];
       Reals p = weights(last.m);
       v.add("e_m2", p[1]);
       for (double& x : p) x /= rounded(last.l, 3);
       v.add("p", p);
       v.add("p_unrounded_l", by_hand().probabilities);
     },
     nullptr, "p divides by the printed l = 1.553, as the text does; the unrounded l gives the softmax itself."},
    {"S1-20", "What is the output of these scores for the values 1, 2, 3, 4?", Provenance::formula,
     [](V& v) {
       v.add("o", by_hand().plain.o[0]);
       const Reals printed = all_rounded(weights(0), 3);
       double sum = 0;
       for (std::size_t i = 0; i < printed.size(); ++i) sum += printed[i] * four_scores().values[i][0];
       v.add("from_printed", sum / rounded(std::exp(by_hand().plain.lse), 3));
     },
     nullptr, "The printed three-decimal factors agree with it to four digits."},
    {"S1-21", "Which steps lead to that output block by block, with one division at the end?", Provenance::formula,
     [](V& v) {
       const UnnormalisedStep &before = by_hand().unnormalised[0], &last = by_hand().unnormalised[1];
       const BlockSoftmax& block = by_hand().normalised[1].block;
       v.add("b1", before.o[0]);
       v.add("b1r", before.o[0] * last.rescale);
       v.add("b2", block.o[0] * block.l);
       v.add("tot", last.o[0]);
       v.add("o", by_hand().o_unnormalised[0]);
       const Reals printed = all_rounded(weights(last.m), 3);
       v.add("b2_from_printed_050", printed[2] * four_scores().values[2][0] + printed[3] * four_scores().values[3][0]);
     },
     nullptr, "3.199 needs the unrounded e^-3; from the printed 0.050 it would be 3.200. Round for display only."},
    {"S1-29", "What do 1000 + 0.2 + 0.2 give in fp16, in both orders?", Provenance::formula,
     [](V& v) {
       const TwoSums half = sums(kA, kB, kB, Dtype::fp16), bf16 = sums(kA, kB, kB, Dtype::bf16),
                     single = sums(kA, kB, kB, Dtype::fp32);
       v.add("b16", static_cast<double>(half.b));
       v.add("left", static_cast<double>(half.left));
       v.add("bb", static_cast<double>(half.pair));
       v.add("right", static_cast<double>(half.right));
       v.add("ulp", ulp(static_cast<double>(kA), Dtype::fp16));
       v.add("bf16_left", static_cast<double>(bf16.left));
       v.add("bf16_right", static_cast<double>(bf16.right));
       v.add("fp32_left", static_cast<double>(single.left));
       v.add("fp32_right", static_cast<double>(single.right));
     },
     nullptr,
     "It takes a rounding after every addition: an fp32 accumulator gives 1000.4 both ways, bf16, whose numbers lie 4 "
     "apart there, 1000 both ways."},
};

}  // namespace

std::span<const WorkedEntry> softmax() {
  return kEntries;
}

}  // namespace hbmscope::worked
