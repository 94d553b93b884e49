#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.hpp"
#include "kernels/attention.hpp"

namespace hbmscope::kernels {

AttentionArgs make_args(const AttentionShape& s, const TilePlan& plan) {
  // Queries and keys stay below kMaxSeqlen, so a limit twice as far is none.
  static constexpr std::int64_t kNoLimit = 2 * kMaxSeqlen;
  const auto edge = [](std::int64_t x) { return static_cast<std::int32_t>(std::clamp(x, -kNoLimit, kNoLimit)); };
  const std::int64_t offset = s.mask_offset();
  AttentionArgs a;
  a.batch = static_cast<std::int32_t>(s.batch);
  a.num_heads = static_cast<std::int32_t>(s.num_heads);
  a.num_kv_heads = static_cast<std::int32_t>(s.num_kv_heads);
  a.seqlen_q = static_cast<std::int32_t>(s.seqlen_q);
  a.seqlen_kv = static_cast<std::int32_t>(s.seqlen_kv);
  a.head_dim = static_cast<std::int32_t>(s.head_dim);
  a.head_dim_v = static_cast<std::int32_t>(s.head_dim_v);
  a.score_stride = static_cast<std::int32_t>(score_stride(s.seqlen_kv));
  a.band_low = s.mask.window_left ? edge(offset - std::min(*s.mask.window_left, kNoLimit)) : edge(-kNoLimit);
  a.band_high = s.mask.window_right ? edge(offset + std::min(*s.mask.window_right, kNoLimit)) : edge(kNoLimit);
  a.order = plan.order;
  a.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.head_dim)));
  a.o_scale = output_scale(s.dtype);
  a.to_log2 = a.scale * std::numbers::log2e_v<float>;
  return a;
}

std::string unsupported_shape(const AttentionShape& s) {
  for (const auto& [name, dim] : {std::pair{"head_dim", s.head_dim}, std::pair{"head_dim_v", s.head_dim_v}}) {
    if (dim % 8 != 0 || dim > 256) {
      return std::string(name) + " " + std::to_string(dim) +
             " is not a multiple of 8 up to 256, which the GPU kernels take";
    }
    if (s.dtype == Dtype::fp8 && dim % 16 != 0) {
      return std::string(name) + " " + std::to_string(dim) + " is not a multiple of 16, which rows of fp8 have to be";
    }
  }
  if (!s.kv_lengths.empty()) return "the GPU kernels take no key padding";
  if (s.seqlen_q > kMaxSeqlen || s.seqlen_kv > kMaxSeqlen) {
    return "the GPU kernels take sequences up to 2^28 tokens";
  }
  if (Count(s.batch) * (Count(s.num_kv_heads) * Count(s.seqlen_kv)) > Count(UINT32_MAX)) {
    return "the GPU kernels take up to 2^32 - 1 rows of K in all";
  }
  if (s.batch > kMaxSeqlen || s.num_heads > kMaxSeqlen || s.batch * s.num_heads > INT32_MAX) {
    return "the GPU kernels take up to 2^31 - 1 heads in all";
  }
  return {};
}

void take_block(std::string_view pipeline, std::string_view option, std::int64_t& block, std::int64_t compiled) {
  if (block == 0) block = compiled;
  if (block == compiled) return;
  throw Error(ErrorKind::usage,
              std::string(option) + " " + std::to_string(block) + ": the GPU kernel of " + std::string(pipeline) +
                  " is compiled for " + std::to_string(compiled) + " at this head_dim",
              "leave it out, or take --engine sim for other tiles");
}

}  // namespace hbmscope::kernels
