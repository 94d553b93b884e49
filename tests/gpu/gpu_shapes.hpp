#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "measure/measure.hpp"
#include "random_shapes.hpp"

namespace hbmscope::testing {

/// A shape that the GPU kernels take: ragged lengths, any head_dim in steps of 8, GQA, bands of all kinds.
inline AttentionShape random_gpu_shape(Draw& draw, std::int64_t longest) {
  AttentionShape s;
  s.batch = draw.between(1, 3);
  s.num_kv_heads = draw.between(1, 3);
  s.num_heads = s.num_kv_heads * draw.one_of<std::int64_t>({1, 1, 2, 3, 4});
  const auto length = [&] {
    return draw.one_of<std::int64_t>({1, draw.between(1, 16), draw.between(1, longest), draw.between(1, longest),
                                      draw.between(1, longest / 64 + 1) * 64});
  };
  s.seqlen_q = length();
  s.seqlen_kv = draw.coin() ? s.seqlen_q : length();
  s.head_dim = draw.one_of<std::int64_t>({64, 128, 256, 8 * draw.between(1, 32), 8 * draw.between(1, 16)});
  s.head_dim_v = draw.between(0, 2) != 0 ? s.head_dim : 8 * draw.between(1, 32);
  s.dtype = draw.coin() ? Dtype::fp16 : Dtype::bf16;
  s.mask.alignment = draw.coin() ? Alignment::bottom_right : Alignment::top_left;
  const auto edge = [&]() -> std::optional<std::int64_t> {
    if (draw.coin()) return std::nullopt;
    return draw.one_of<std::int64_t>({0, 1, draw.between(0, longest), std::int64_t{1} << 60});
  };
  s.mask.window_left = edge();
  s.mask.window_right = edge();
  return s;
}

/// Every pipeline of `list` that runs `shape`, with the plans of choice.
inline MeasureRequest request_for(const AttentionShape& shape, const TilePlan& wanted = {},
                                  std::span<const kernels::Pipeline* const> list = kernels::pipelines()) {
  MeasureRequest request;
  request.shape = shape;
  for (const kernels::Pipeline* p : list) {
    if (p->unsupported(shape).empty()) request.items.push_back({p, p->plan(shape, wanted), {}});
  }
  request.hw_counters = request.timing = false;
  return request;
}

}  // namespace hbmscope::testing
