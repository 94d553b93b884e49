#pragma once
#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/profile_import.hpp"
#include "core/error.hpp"
#include "helpers.hpp"
#include "ncu_files.hpp"
#include "process.hpp"
#include "scenario/gpu_file.hpp"

/// What ncu wrote of other people's kernels on an H200 with CUDA 13.0, the L2 not flushed before: tests/data/ncu.
namespace hbmscope::testing {

inline AttentionShape shape_of(std::int64_t batch, std::int64_t heads, std::int64_t seqlen, std::int64_t head_dim,
                               Mask mask = Mask::none()) {
  AttentionShape s;
  s.batch = batch;
  s.num_heads = s.num_kv_heads = heads;
  s.seqlen_q = s.seqlen_kv = seqlen;
  s.head_dim = s.head_dim_v = head_dim;
  s.dtype = Dtype::bf16;
  s.mask = mask;
  return s;
}

inline RunRequest beside(std::string_view algorithm, const AttentionShape& shape, TilePlan plan = {},
                         Engine engine = Engine::sim) {
  RunRequest r;
  r.shape = shape;
  r.algorithms = {std::string(algorithm)};
  r.plan = std::move(plan);
  r.gpu = embedded_gpu("H200");
  r.engine = engine;
  return r;
}

inline ProfileImport import_text(const std::string& text, std::optional<RunRequest> request = {},
                                 std::string kernel = {}) {
  return import_profile({"file.csv", parse_ncu_csv(text, "file.csv"), std::move(kernel), std::move(request)});
}
inline ProfileImport import_file(const std::string& name, std::optional<RunRequest> request = {},
                                 std::string kernel = {}) {
  return import_text(real_file(name), std::move(request), std::move(kernel));
}

inline constexpr const char* kFa2 = "fa2_1_8_8192_128_noflush.csv";
inline constexpr const char* kNaive = "naive_1_32_4096_128_noflush.csv";
inline constexpr const char* kCudnn = "cudnn_1_8_8192_128_noflush.csv";

/// One row more for launch 0 of a file that has only that one.
inline std::string with_metric(const std::string& text, const std::string& metric, const std::string& unit,
                               const std::string& value) {
  const std::size_t last = text.rfind("\n\"0\"") + 1;
  const std::size_t section = text.find("\"Command line profiler metrics\"", last);
  return text + text.substr(last, section - last) + "\"Command line profiler metrics\",\"" + metric + "\",\"" + unit +
         "\",\"" + value + "\"\n";
}

struct Refusal {
  ErrorKind kind;
  std::string what, hint;
};
template <class Call>
Refusal refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK_FALSE(error.hint().empty());
    return {error.kind(), error.what(), error.hint()};
  }
  FAIL("no error");
  return {};
}

// One head of N = 8192, d = 128 in bf16 with 128 query rows a tile: each of the 64 query tiles reads all of K and V.
inline constexpr std::int64_t kHeads = 8, kN = 8192, kD = 128, kE = 2;
inline constexpr std::int64_t kOutput = kHeads * kN * kD * kE;
inline constexpr std::int64_t kFlashReads = kHeads * (kN / 128) * 2 * kN * kD * kE + kOutput;
inline constexpr std::int64_t kLse = kHeads * kN * 4;

}  // namespace hbmscope::testing
