#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/run.hpp"
#include "helpers.hpp"
#include "scenario/gpu_file.hpp"

/// Short words for the shapes, counts and complaints of test_public_*.cpp.
namespace hbmscope::testing {

inline constexpr std::string_view kForward[] = {"naive", "flash_v1", "flash_v2", "split_kv"};

inline AttentionShape shape(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t seqlen_q,
                            std::int64_t seqlen_kv, std::int64_t head_dim, const Mask& mask = Mask::none()) {
  AttentionShape s;
  s.batch = batch;
  s.num_heads = heads;
  s.num_kv_heads = kv_heads;
  s.seqlen_q = seqlen_q;
  s.seqlen_kv = seqlen_kv;
  s.head_dim = s.head_dim_v = head_dim;
  s.mask = mask;
  return s;
}
inline AttentionShape head(std::int64_t seqlen_q, std::int64_t seqlen_kv, std::int64_t head_dim,
                           const Mask& mask = Mask::none()) {
  return shape(1, 1, 1, seqlen_q, seqlen_kv, head_dim, mask);
}

inline Traffic bytes_of(std::string_view name, const AttentionShape& s, const TilePlan& p = tiles(128, 128)) {
  return total(algorithm(name).closed_form(s, p));
}
inline Flop matmul(std::string_view name, const AttentionShape& s) {
  return algorithm(name).flops(s, tiles(128, 128)).matmul;
}
inline std::int64_t pairs(const AttentionShape& s) {
  return live_pairs(s).value();
}
inline Bytes kv_bytes(const AttentionShape& s) {
  return tensor_bytes(Tensor::K, s, {}) + tensor_bytes(Tensor::V, s, {});
}

inline FlopPerSecond peak(std::string_view gpu, Dtype dtype = Dtype::bf16) {
  return *embedded_gpu(gpu).peak[static_cast<std::size_t>(dtype)];
}
inline BytesPerSecond bandwidth(std::string_view gpu) {
  return embedded_gpu(gpu).hbm_bandwidth;
}
constexpr double tera(FlopPerSecond rate) {
  return rate.value / 1e12;
}

inline RunResult model_of(const AttentionShape& s, std::string_view gpu = "H100", Engine engine = Engine::model,
                          bool l2_warm = false) {
  RunRequest r;
  r.shape = s;
  r.gpu = embedded_gpu(gpu);
  r.engine = engine;
  r.l2_warm = l2_warm;
  return run(r);
}

inline bool warns(const RunResult& r, std::string_view part) {
  return std::any_of(r.warnings.begin(), r.warnings.end(),
                     [&](const std::string& w) { return w.find(part) != std::string::npos; });
}

/// "message | hint" of the Error that `work` ends in; empty if there is none.
template <class Work>
inline std::string complaint(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what() + (" | " + error.hint());
  }
  return {};
}
inline std::string complaint_about(const AttentionShape& s) {
  return complaint([&] { validate(s, Speaker::option); });
}
inline AttentionResult on_cpu(std::string_view name, const AttentionShape& s, const TilePlan& p) {
  return run_cpu(name, s, p, sample_rows(s, 1 << 20, 1 << 10, 1), 1);
}

}  // namespace hbmscope::testing
