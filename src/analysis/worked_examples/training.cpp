#include "analysis/worked_examples/parts.hpp"

// Figure 2 of the FlashAttention paper: batch 64, 16 heads, N = 1,024, d = 64, forward and backward.
namespace hbmscope::worked {
namespace {

using V = WorkedValues;

/// Printed in the figure.
constexpr double kStandardGflops = 66.6, kFlashGflops = 75.2;                // both versions
constexpr Bytes kStandardBytes(35'300'000'000), kFlashBytes(4'400'000'000);  // NeurIPS 2022
constexpr Bytes kArxivStandardBytes(40'300'000'000);                         // arXiv v2
constexpr Seconds kStandardTime{35.1e-3}, kFlashTime{11.7e-3};               // NeurIPS 2022
constexpr Seconds kArxivStandardTime{41.7e-3}, kArxivFlashTime{7.3e-3};      // arXiv v2
constexpr std::string_view kSource =
    "Dao, Fu, Ermon, Rudra and Re, FlashAttention, Figure 2 left: NeurIPS 2022 version, and arXiv 2205.14135v2 of June "
    "2022 for the values called arxiv";

AttentionShape figure() {
  return heads(64, 16, 1024, 64);
}
/// Forward and backward together.
Flop flop_of(std::string_view forward, std::string_view backward) {
  return flops_of(forward, figure()).matmul + flops_of(backward, figure()).matmul;
}
Bytes standard_bytes() {
  return traffic_of("naive", figure()).total() + traffic_of("naive_bwd", figure()).total();
}
/// What Algorithms 0 and 3 move besides square matrices: 12 passes over an N x d tensor.
Bytes linear_bytes() {
  const Traffic forward = traffic_of("naive", figure()), backward = traffic_of("naive_bwd", figure());
  Bytes square = square_bytes(forward) + square_bytes(backward);
  for (const Tensor t : {Tensor::dP, Tensor::dS}) square += backward[t].total();
  return standard_bytes() - square;
}
/// Square passes that a printed total has room for, the linear ones taken out.
double square_passes(Bytes printed) {
  return ratio(printed - linear_bytes(), scores(figure()));
}

constexpr WorkedEntry kEntries[] = {
    {"S2-07", "66.6 against 75.2 GFLOPs: FlashAttention does more work", Provenance::quoted,
     [](V& v) {
       const Flop standard = flop_of("naive", "naive_bwd"), flash = flop_of("flash_v2", "flash_v2_bwd");
       v.add("ratio", kFlashGflops / kStandardGflops);
       v.add("matmul_std_GFLOP", standard, unit::GFLOP);
       v.add("matmul_fa_GFLOP", flash, unit::GFLOP);
       v.add("factor_std", standard.as_double() / unit::GFLOP.size / kStandardGflops);
       v.add("factor_fa", flash.as_double() / unit::GFLOP.size / kFlashGflops);
       v.add("matmul_ratio", ratio(flash, standard));
       v.add("printed_std_GFLOPs", kStandardGflops);
       v.add("printed_fa_GFLOPs", kFlashGflops);
     },
     nullptr,
     "Not reproducible: the stated shape takes 825 and 962 GFLOP of products, 12 to 13 times the printed figures, and "
     "no stated convention explains them. Seven products against six is what recomputation costs.",
     kSource},
    {"S2-08", "HBM reads and writes fell from 35.3 to 4.4 GB", Provenance::quoted,
     [](V& v) {
       TilePlan released = tiles(16, 256), masked;
       released.variant = FlashV1Variant::released;
       masked.mask_pass = true;
       v.add("ratio", ratio(kStandardBytes, kFlashBytes));
       v.add("N2_pass_GB", scores(figure()), unit::GB);
       v.add("Nd_pass_GB", tensor_bytes(Tensor::Q, figure(), {}), unit::GB);
       v.add("passes_if_12Nd", square_passes(kStandardBytes));
       v.add("arxiv_std_GB", kArxivStandardBytes, unit::GB);
       v.add("arxiv_passes_if_12Nd", square_passes(kArxivStandardBytes));
       v.add("counted_std_GB", standard_bytes(), unit::GB);
       v.add("counted_std_passes", square_passes(standard_bytes()));
       v.add("counted_mask_fwd_GB",
             traffic_of("naive", figure(), masked).total() + traffic_of("naive_bwd", figure()).total(), unit::GB);
       v.add(
           "counted_fa_released_GB",
           traffic_of("flash_v1", figure(), released).total() + traffic_of("flash_v1_bwd", figure(), released).total(),
           unit::GB);
     },
     nullptr,
     "Two versions of the paper print 35.3 and 40.3 GB; Algorithms 0 and 3 alone move 25.2, so masks or dropout made 5 "
     "to 7 square passes more, and which ones ran is not stated. The first release's tile loads are 6.1 GB, so 4.4 GB "
     "is behind an L2 or counted with 2-byte temporaries.",
     kSource},
    {"S2-09", "Forward and backward fell from 35.1 to 11.7 ms", Provenance::quoted,
     [](V& v) {
       v.add("ratio", kStandardTime / kFlashTime);
       v.add("bw_std_TBs", kStandardBytes / kStandardTime, unit::TB_per_s);
       v.add("bw_fa_TBs", kFlashBytes / kFlashTime, unit::TB_per_s);
       v.add("arxiv_ratio", kArxivStandardTime / kArxivFlashTime);
     },
     nullptr,
     "The arXiv version prints 41.7 and 7.3 ms for the same figure: 5.7 times, not 3. What the printed bytes and times "
     "imply is well below the 1.555 TB/s of the A100.",
     kSource},
    {"S2-10", "What is the shape of that figure worth?", Provenance::formula,
     [](V& v) {
       const AttentionShape s = figure();
       const Bytes model = compulsory_bytes(s, Pass::forward) + compulsory_bytes(s, Pass::backward);
       v.add("heads_total", Count(s.batch) * Count(s.num_heads));
       v.add("S_GB", scores(s), unit::GB);
       v.add("QKVO_each_GB", tensor_bytes(Tensor::Q, s, {}), unit::GB);
       v.add("compulsory_fwd_bwd_GB", model + tensor_bytes(Tensor::O, s, {}), unit::GB);
       v.add("without_O_in_bwd_GB", model, unit::GB);
     },
     nullptr,
     "Twelve N d tensors count O as an input of the backward pass too; `compulsory` elsewhere in hbmscope leaves it "
     "out there, which makes eleven."},
};

}  // namespace

std::span<const WorkedEntry> training() {
  return kEntries;
}

}  // namespace hbmscope::worked
