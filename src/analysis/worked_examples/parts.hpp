#pragma once
#include <cmath>
#include <cstdint>
#include <string_view>

#include "analysis/run.hpp"
#include "analysis/worked_examples.hpp"
#include "model/algorithm.hpp"
#include "model/memory.hpp"

/// What the themes share.
namespace hbmscope::worked {

inline AttentionShape heads(std::int64_t batch, std::int64_t num_heads, std::int64_t seqlen, std::int64_t head_dim,
                            const Mask& mask = Mask::none()) {
  AttentionShape s;
  s.batch = batch;
  s.num_heads = s.num_kv_heads = num_heads;
  s.seqlen_q = s.seqlen_kv = seqlen;
  s.head_dim = s.head_dim_v = head_dim;
  s.mask = mask;
  return s;
}
inline AttentionShape head(std::int64_t seqlen, std::int64_t head_dim, const Mask& mask = Mask::none()) {
  return heads(1, 1, seqlen, head_dim, mask);
}
/// One query of each head on a cache of `keys`.
inline AttentionShape decode(std::int64_t num_heads, std::int64_t num_kv_heads, std::int64_t keys,
                             std::int64_t head_dim) {
  AttentionShape s = heads(1, num_heads, keys, head_dim);
  s.num_kv_heads = num_kv_heads;
  s.seqlen_q = 1;
  return s;
}

inline TilePlan tiles(std::int64_t block_q, std::int64_t block_kv) {
  TilePlan p;
  p.block_q = block_q;
  p.block_kv = block_kv;
  return p;
}

/// Bytes between SM and L2 by closed form; naive takes each operand once a kernel, as the papers count.
inline Traffic traffic_of(std::string_view algorithm_name, const AttentionShape& s,
                          const TilePlan& p = tiles(128, 128)) {
  return total(algorithm(algorithm_name).closed_form(s, p));
}
inline FlopCount flops_of(std::string_view algorithm_name, const AttentionShape& s,
                          const TilePlan& p = tiles(128, 128)) {
  return algorithm(algorithm_name).flops(s, p);
}
inline MemoryLedger ledger_of(std::string_view algorithm_name, const AttentionShape& s,
                              const TilePlan& p = tiles(128, 128)) {
  return memory_ledger(algorithm(algorithm_name), s, p);
}

/// Bytes that pass for S and for P.
inline Bytes square_bytes(const Traffic& t) {
  return t[Tensor::S].total() + t[Tensor::P].total();
}
/// One copy of S.
inline Bytes scores(const AttentionShape& s) {
  return tensor_bytes(Tensor::S, s, {});
}

template <class Tag>
double ratio(Exact<Tag> a, Exact<Tag> b) {
  return a.as_double() / b.as_double();
}

/// What a text prints: so many decimals.
inline double rounded(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return std::round(value * scale) / scale;
}
/// What a text prints of a quantity in a unit, as a quantity again.
template <class Tag>
Exact<Tag> rounded(Exact<Tag> value, Unit unit, int decimals) {
  return Exact<Tag>(std::llround(rounded(value.as_double() / unit.size, decimals) * unit.size));
}

/// Closed forms, L2 simulation and predicted times of one shape on an embedded GPU.
RunResult simulated_run(const AttentionShape& shape, std::string_view gpu, const std::vector<std::string>& algorithms);

// The themes, each in the file of its name.
std::span<const WorkedEntry> sizes();
std::span<const WorkedEntry> softmax();
std::span<const WorkedEntry> schedule();
std::span<const WorkedEntry> serving();
std::span<const WorkedEntry> training();
std::span<const WorkedEntry> time_and_roofs();
std::span<const WorkedEntry> quoted();
std::span<const WorkedEntry> demonstrations_of_exactness();
std::span<const WorkedEntry> demonstrations_of_traffic();
std::span<const WorkedEntry> demonstrations_of_memory();
std::span<const WorkedEntry> demonstrations_of_serving();
std::span<const WorkedEntry> demonstrations_of_reading();

}  // namespace hbmscope::worked
