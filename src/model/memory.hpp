#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "model/algorithm.hpp"

namespace hbmscope {

/// One tensor's place in memory: from the first stage that touches it (inputs: from the start) to the last (outputs: to
/// the end).
struct LedgerEntry {
  Tensor tensor;
  Bytes bytes;
  std::size_t first_stage, last_stage;
  bool intermediate;        ///< neither an input nor an output of attention
  bool saved_for_backward;  ///< the backward pass needs it
};

struct MemoryLedger {
  std::vector<LedgerEntry> entries;
  Bytes intermediate_bytes;        ///< of all intermediates, whether or not they live at one time
  Bytes saved_for_backward_bytes;  ///< of a forward pass: inputs, and P or O with its statistics
  Bytes peak_bytes;                ///< the most that lives in one stage
  std::string_view peak_stage;
};

/// Bytes that `tensor` takes in HBM.
Bytes tensor_bytes(Tensor tensor, const AttentionShape& shape, const TilePlan& plan);

/// Which tensors the algorithm keeps in HBM, and how much lives at once if each is freed after its last use.
MemoryLedger memory_ledger(const Algorithm& algorithm, const AttentionShape& shape, const TilePlan& plan);
/// The same where the algorithm's closed form is there already.
MemoryLedger memory_ledger(const Algorithm& algorithm, std::span<const StageTraffic> stages,
                           const AttentionShape& shape, const TilePlan& plan);

/// The memory table of the FlashAttention paper (arXiv 2205.14135, Table 21, printed as MB, in fact MiB; forward and
/// backward, no mask or dropout) fits 4 N^2 + 10 N d for standard attention and 11 N d (N <= 256) or 13 N d, each with
/// two fp32 statistics a row, for FlashAttention. A fit to a table, not a model.
struct MemoryFit {
  Bytes standard, flash;
};
MemoryFit paper_memory_fit(const AttentionShape& shape);

}  // namespace hbmscope
