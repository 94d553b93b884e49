#include "analysis/worked_examples/parts.hpp"
#include "model/paper.hpp"
#include "model/plan_choice.hpp"
#include "simulate/traffic_counter.hpp"

// What tiling keeps on chip, and which tiles a schedule visits.
namespace hbmscope::worked {
namespace {

using V = WorkedValues;

/// Key rows that flash_v2 loads, counted by walking its loop nest.
Bytes k_loads(const AttentionShape& s) {
  TrafficCounter counter;
  walk(algorithm("flash_v2").walk(s, tiles(128, 128)), counter);
  return counter.traffic()[Tensor::K].read;
}

constexpr WorkedEntry kEntries[] = {
    {"S0-04", "What is M/d^2 for M = 65,536 elements and d = 64?", Provenance::formula,
     [](V& v) {
       const AttentionShape s = head(8192, 64);
       const PaperClaims claims = paper_claims(s, Count(65536) * Bytes(s.element_bytes()));
       v.add("factor", claims.reduction_m_over_d2);
       v.add("SRAM_KiB", claims.sram_bytes, unit::KiB);
       v.add("Bc", claims.block_kv);
       v.add("Br", claims.block_q);
       v.add("factor_with_Alg1_constants", claims.reduction_with_constants);
       v.add("counted_at_N_8192", ratio(claims.naive_bytes, claims.algorithm1_bytes));
     },
     nullptr,
     "An order of growth with the constants of both sides dropped, M in elements: Algorithm 1 with its own block sizes "
     "leaves M/(3 d^2), and counted byte for byte a little less."},
    {"S1-22", "What do 128-wide tiles take on chip at d = 128?", Provenance::formula,
     [](V& v) {
       const AttentionShape tile = head(128, 128);
       TilePlan fp32_scores;
       fp32_scores.fp32_scores = true;
       const Bytes qkv = smem_tally(algorithm("flash_v2"), tile, tiles(128, 128)).total;
       const Bytes score = tensor_bytes(Tensor::S, tile, fp32_scores);
       v.add("tile", tensor_bytes(Tensor::Q, tile, {}), unit::KiB);
       v.add("qkv", qkv, unit::KiB);
       v.add("score", score, unit::KiB);
       v.add("total", qkv + score, unit::KiB);
       v.add("with_fp32_O_acc", qkv + score + tensor_bytes(Tensor::Otmp, tile, {}), unit::KiB);
     },
     nullptr,
     "The KB of this sum are 1,024 bytes, unlike MB and GB elsewhere. Kernels keep scores and the fp32 output in "
     "registers; of SMEM they take Q, K and V."},
    {"S1-23", "Which part of the tiles does a causal mask leave at N = 8,192?", Provenance::simulated,
     [](V& v) {
       const AttentionShape full = head(8192, 128), causal = head(8192, 128, Mask::causal());
       v.add("T", Count(k_loads(full).value() / tensor_bytes(Tensor::K, full, {}).value()));
       v.add("ratio", ratio(k_loads(causal), k_loads(full)));
       v.add("elements", ratio(live_pairs(causal), live_pairs(full)));
     },
     nullptr,
     "\"Half\" is (T + 1)/(2T) of the tiles, counted on the walk, as tiles on the diagonal are done whole; T is the "
     "number of 128-row query tiles."},
};

}  // namespace

std::span<const WorkedEntry> schedule() {
  return kEntries;
}

}  // namespace hbmscope::worked
