#include "model/memory.hpp"

#include <algorithm>

namespace hbmscope {

Bytes tensor_bytes(Tensor tensor, const AttentionShape& s, const TilePlan& plan) {
  const Count q_rows = Count(s.batch) * Count(s.num_heads) * Count(s.seqlen_q);
  const Count kv_rows = Count(s.batch) * Count(s.num_kv_heads) * Count(s.seqlen_kv);
  const Count kv_rows_each = Count(s.batch) * Count(s.num_heads) * Count(s.seqlen_kv);
  const Count d(s.head_dim), dv(s.head_dim_v), splits(plan.num_kv_splits);
  const Bytes e(s.element_bytes()), stat(kStatisticBytes), acc(kAccumulatorBytes);
  const Bytes score(plan.fp32_scores ? 4 : s.element_bytes());
  switch (tensor) {
    case Tensor::Q:
    case Tensor::dQ:
      return q_rows * d * e;
    case Tensor::O:
    case Tensor::dO:
      return q_rows * dv * e;
    case Tensor::K:
    case Tensor::dK:
      return kv_rows * d * e;
    case Tensor::V:
    case Tensor::dV:
      return kv_rows * dv * e;
    case Tensor::Kx:
    case Tensor::dKx:
      return kv_rows_each * d * e;
    case Tensor::Vx:
    case Tensor::dVx:
      return kv_rows_each * dv * e;
    case Tensor::S:
    case Tensor::dS:
      return q_rows * Count(s.seqlen_kv) * score;
    case Tensor::P:
    case Tensor::Pd:
    case Tensor::dP:
      return q_rows * Count(s.seqlen_kv) * e;
    case Tensor::dmask:
      return q_rows * Count(s.seqlen_kv) * Bytes(1);
    case Tensor::l:
    case Tensor::m:
    case Tensor::LSE:
    case Tensor::D:
      return q_rows * stat;
    case Tensor::Otmp:
      return q_rows * dv * acc;
    case Tensor::Oacc:
      return splits * q_rows * dv * acc;
    case Tensor::LSEacc:
      return splits * q_rows * stat;
    case Tensor::dQtmp:
    case Tensor::dQacc:
      return q_rows * d * acc;
  }
  return {};
}

MemoryLedger memory_ledger(const Algorithm& algorithm, const AttentionShape& shape, const TilePlan& plan) {
  return memory_ledger(algorithm, algorithm.closed_form(shape, plan), shape, plan);
}

MemoryLedger memory_ledger(const Algorithm& algorithm, std::span<const StageTraffic> stages,
                           const AttentionShape& shape, const TilePlan& plan) {
  MemoryLedger ledger;
  const bool forward = algorithm.pass != Pass::backward;
  const auto is_given = [&](Tensor t) {
    if (info(t).role == TensorRole::input) return true;
    // A backward pass is given what the forward pass saved.
    return !forward && (t == Tensor::O || t == Tensor::P || t == Tensor::LSE || t == Tensor::l || t == Tensor::m);
  };
  const auto outlives = [&](Tensor t) { return info(t).role == TensorRole::output || (forward && t == Tensor::LSE); };
  const bool keeps_p = std::any_of(stages.begin(), stages.end(),
                                   [](const StageTraffic& s) { return s.traffic[Tensor::P].total().value() > 0; });
  const auto needed_backward = [&](Tensor t) {
    if (!forward) return false;
    if (t == Tensor::Q || t == Tensor::K || t == Tensor::V) return true;
    if (keeps_p) return t == Tensor::P || t == Tensor::Pd || t == Tensor::dmask;
    return t == Tensor::O || t == Tensor::LSE || t == Tensor::l || t == Tensor::m;
  };
  for (const TensorInfo& tensor : kTensors) {
    const auto touches = [&](const StageTraffic& s) { return s.traffic[tensor.tensor].total().value() > 0; };
    const auto first = std::find_if(stages.begin(), stages.end(), touches);
    if (first == stages.end()) continue;
    const auto last = std::find_if(stages.rbegin(), stages.rend(), touches);
    LedgerEntry entry{tensor.tensor,
                      tensor_bytes(tensor.tensor, shape, plan),
                      static_cast<std::size_t>(first - stages.begin()),
                      stages.size() - 1 - static_cast<std::size_t>(last - stages.rbegin()),
                      false,
                      needed_backward(tensor.tensor)};
    // The caller holds inputs throughout.
    if (is_given(tensor.tensor)) entry.first_stage = 0, entry.last_stage = stages.size() - 1;
    if (outlives(tensor.tensor)) entry.last_stage = stages.size() - 1;
    entry.intermediate = !is_given(tensor.tensor) && info(tensor.tensor).role != TensorRole::output;
    if (entry.intermediate) ledger.intermediate_bytes += entry.bytes;
    if (entry.saved_for_backward) ledger.saved_for_backward_bytes += entry.bytes;
    ledger.entries.push_back(entry);
  }
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    Bytes live;
    for (const LedgerEntry& entry : ledger.entries) {
      if (entry.first_stage <= stage && stage <= entry.last_stage) live += entry.bytes;
    }
    if (live > ledger.peak_bytes) {
      ledger.peak_bytes = live;
      ledger.peak_stage = stages[stage].stage;
    }
  }
  return ledger;
}

MemoryFit paper_memory_fit(const AttentionShape& s) {
  const Count heads = Count(s.batch) * Count(s.num_heads), N(s.seqlen_q);
  const Bytes e(s.element_bytes()), stat(kStatisticBytes);
  const Bytes NN = heads * N * Count(s.seqlen_kv) * e, Nd = heads * N * Count(s.head_dim) * e;
  return {Count(4) * NN + Count(10) * Nd, Count(s.seqlen_q <= 256 ? 11 : 13) * Nd + Count(2) * (heads * N * stat)};
}

}  // namespace hbmscope
