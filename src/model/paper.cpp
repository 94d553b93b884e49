#include "model/paper.hpp"

#include <algorithm>
#include <cmath>

#include "model/algorithm.hpp"

namespace hbmscope {

Algorithm1Blocks algorithm1_blocks(std::int64_t sram_elements, std::int64_t head_dim) {
  const std::int64_t block_kv = std::max<std::int64_t>(1, (sram_elements + 4 * head_dim - 1) / (4 * head_dim));
  return {std::min(block_kv, head_dim), block_kv};
}

PaperClaims paper_claims(const AttentionShape& s, Bytes sram) {
  PaperClaims claims;
  claims.sram_bytes = sram;
  const std::int64_t whole_elements = sram.value() / s.element_bytes();
  const double M = sram.as_double() / static_cast<double>(s.element_bytes());
  const double heads = static_cast<double>(s.batch) * static_cast<double>(s.num_heads);
  const auto Nq = static_cast<double>(s.seqlen_q), Nk = static_cast<double>(s.seqlen_kv),
             d = static_cast<double>(s.head_dim);
  claims.sram_elements = M;
  const double rows = s.seqlen_q == s.seqlen_kv ? Nq : Nq + Nk;
  claims.standard_elements = heads * (rows * d + Nq * Nk);
  claims.flash_elements = heads * Nq * Nk * d * d / M;
  claims.lower_bound_elements = heads * std::min(Nq * Nk * d / std::sqrt(M), Nq * Nk * d * d / M);
  claims.reduction_m_over_d2 = M / (d * d);
  claims.reduction_with_constants = M / (3 * d * d);
  claims.reduction_n_over_d = Nk / d;

  const auto [block_q, block_kv] = algorithm1_blocks(whole_elements, s.head_dim);
  claims.block_q = block_q;
  claims.block_kv = block_kv;
  AttentionShape unmasked = s;
  unmasked.mask = Mask::none();
  unmasked.kv_lengths.clear();
  unmasked.num_kv_heads = unmasked.num_heads;
  TilePlan plan;
  plan.block_q = block_q;
  plan.block_kv = block_kv;
  for (const StageTraffic& stage : algorithm("flash_v1").closed_form(unmasked, plan)) {
    const Bytes bytes = stage.traffic.total();
    claims.algorithm1_bytes_with_init += bytes;
    if (stage.stage == "init") continue;
    claims.algorithm1_bytes += bytes;
    Count elements;
    for (const TensorInfo& tensor : kTensors) {
      const bool statistic = tensor.tensor == Tensor::l || tensor.tensor == Tensor::m;
      elements +=
          Count(stage.traffic[tensor.tensor].total().value() / (statistic ? kStatisticBytes : s.element_bytes()));
    }
    claims.algorithm1_elements += elements;
  }
  claims.naive_bytes = total(algorithm("naive").closed_form(unmasked, {})).total();
  claims.naive_elements = Count(claims.naive_bytes.value() / s.element_bytes());
  return claims;
}

}  // namespace hbmscope
