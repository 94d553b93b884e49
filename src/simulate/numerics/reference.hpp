#pragma once
#include <cstdint>
#include <vector>

#include "simulate/numerics/numerics.hpp"
#include "simulate/numerics/tiles.hpp"

namespace hbmscope::numerics {

/// The sampled query heads that share one kv head.
struct HeadGroup {
  std::int64_t batch;
  std::int64_t kv_head;
  std::vector<std::int64_t> places;  ///< in RowSample::batch_heads
};
std::vector<HeadGroup> group_heads(const AttentionShape& shape, const RowSample& sample);

ReferenceResult empty_reference(const AttentionShape& shape, const RowSample& sample);

/// Fills in the part of `reference` that the heads of one group are.
void reference_group(const AttentionShape& shape, const RowSample& sample, const HeadGroup& group, const KvHead& kv,
                     const InputSource& inputs, const Kernels& kernels, int threads, ReferenceResult& reference);

}  // namespace hbmscope::numerics
