#pragma once
#include <initializer_list>
#include <random>
#include <string>

#include "model/algorithm.hpp"

/// Random shapes and plans for property tests: small enough to enumerate, odd enough to reach every edge.
namespace hbmscope::testing {

/// Cases of a test that draws them: fewer under the sanitizers, which look at the code and not at the figures.
constexpr int cases(int plain) {
#if HBMSCOPE_SANITIZED
  return (plain + 3) / 4;
#else
  return plain;
#endif
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[between(0, static_cast<std::int64_t>(values.size()) - 1)];
  }
  bool coin() { return (random_() & 1) != 0; }

 private:
  std::mt19937_64 random_;
};

inline AttentionShape random_shape(Draw& draw, std::int64_t longest) {
  AttentionShape s;
  s.batch = draw.between(1, 3);
  s.num_kv_heads = draw.between(1, 3);
  s.num_heads = s.num_kv_heads * draw.one_of<std::int64_t>({1, 1, 2, 3, 4});
  s.seqlen_q = draw.one_of<std::int64_t>({1, 2, draw.between(1, longest), draw.between(1, longest)});
  s.seqlen_kv = draw.coin() ? s.seqlen_q : draw.between(1, longest);
  s.head_dim = draw.one_of<std::int64_t>({1, 8, 16, 24, 63, 64});
  s.head_dim_v = draw.coin() ? s.head_dim : draw.one_of<std::int64_t>({1, 5, 16, 32});
  s.dtype = draw.one_of({Dtype::fp32, Dtype::fp16, Dtype::bf16, Dtype::fp8});
  s.mask.alignment = draw.coin() ? Alignment::bottom_right : Alignment::top_left;
  const auto edge = [&]() -> std::optional<std::int64_t> {
    if (draw.coin()) return std::nullopt;
    return draw.one_of<std::int64_t>({0, 1, 2, draw.between(0, longest), std::int64_t{1} << 60});
  };
  s.mask.window_left = edge();
  s.mask.window_right = edge();
  if (draw.between(0, 3) == 0) {
    for (std::int64_t b = 0; b < s.batch; ++b)
      s.kv_lengths.push_back(draw.one_of<std::int64_t>({0, s.seqlen_kv, draw.between(0, s.seqlen_kv)}));
  }
  return s;
}

inline TilePlan random_plan(Draw& draw, std::int64_t largest) {
  TilePlan p;
  p.block_q = draw.between(1, largest);
  p.block_kv = draw.between(1, largest);
  p.variant = draw.coin() ? FlashV1Variant::paper : FlashV1Variant::released;
  if (draw.coin()) p.pack_gqa = draw.coin();
  p.cluster = draw.one_of<std::int64_t>({1, 1, 2, 3});
  p.num_kv_splits = draw.one_of<std::int64_t>({1, 2, 3, 8});
  p.atomics = draw.coin() ? Atomics::write_only : Atomics::rmw;
  if (draw.coin()) p.gemm_tile = {draw.between(1, largest), draw.between(1, largest)};
  p.softmax_reads = draw.between(1, 3);
  p.scale_pass = draw.coin();
  p.mask_pass = draw.coin();
  p.dropout = draw.coin();
  p.fp32_scores = draw.coin();
  p.repeat_kv = draw.coin();
  return p;
}

inline std::string describe(const AttentionShape& s, const TilePlan& p) {
  const auto n = [](std::int64_t v) { return std::to_string(v) + " "; };
  const auto w = [](const std::optional<std::int64_t>& v) { return v ? std::to_string(*v) : "-"; };
  std::string text = "B H Hkv Nq Nk d dv: " + n(s.batch) + n(s.num_heads) + n(s.num_kv_heads) + n(s.seqlen_q) +
                     n(s.seqlen_kv) + n(s.head_dim) + n(s.head_dim_v) + "window " + w(s.mask.window_left) + "," +
                     w(s.mask.window_right) + " " + std::string(name(s.mask.alignment)) + " blocks " + n(p.block_q) +
                     n(p.block_kv) + "cluster " + n(p.cluster) + "splits " + n(p.num_kv_splits) + "lengths";
  for (const std::int64_t length : s.kv_lengths) text += " " + std::to_string(length);
  return text;
}

}  // namespace hbmscope::testing
