#include "simulate/numerics/steps.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "core/rounding.hpp"

namespace hbmscope::numerics {

namespace {
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
}

SoftmaxState::SoftmaxState(std::int64_t tile_rows, std::int64_t head_dim_v)
    : columns(whole_panels(head_dim_v)),
      m(static_cast<std::size_t>(tile_rows), kMinusInfinity),
      l(static_cast<std::size_t>(tile_rows), 0.0F),
      o(static_cast<std::size_t>(tile_rows * columns), 0.0F) {}

void compute_scores(const Kernels& kernels, const QueryTile& q, const KvHead& kv, ScoreTile& s) {
  kernels.multiply({.a = q.q.data(),
                    .a_stride = q.head_dim,
                    .b = kv.k.data() + s.first_column * kv.head_dim,
                    .panel_stride = kv.head_dim * kPanel,
                    .c = s.values.data(),
                    .c_stride = s.columns,
                    .rows = q.rows,
                    .panels = s.columns / kPanel,
                    .depth = kv.head_dim,
                    .accumulate = false});
}

std::int64_t scale_and_mask(const Kernels& kernels, const QueryTile& q, float scale, ScoreTile& s) {
  std::int64_t nonfinite = 0;
  for (std::int64_t r = 0; r < s.rows; ++r) {
    float* row = s.row(r);
    const KeyRange live = intersection(q.visible[static_cast<std::size_t>(r)], s.keys);
    if (live.empty()) {
      std::fill(row, row + s.columns, kMinusInfinity);
      continue;
    }
    nonfinite += kernels.count_nonfinite(row + s.column(live.first), live.size());
    kernels.scale_row(row, s.columns, scale);
    std::fill(row, row + s.column(live.first), kMinusInfinity);
    std::fill(row + s.column(live.last), row + s.columns, kMinusInfinity);
  }
  return nonfinite;
}

void accumulate_values(const Kernels& kernels, const QueryTile& q, const KvHead& kv, Dtype dtype, ScoreTile& p,
                       SoftmaxState& state) {
  round_to(p.values, dtype);
  // Keys outside are not touched at all: 0 * NaN would let them in.
  const KeyRange keys = intersection(q.any_visible, p.keys);
  if (keys.empty()) return;
  kernels.multiply({.a = p.values.data() + p.column(keys.first),
                    .a_stride = p.columns,
                    .b = kv.v.data() + keys.first * kPanel,
                    .panel_stride = kv.v_panel_stride(),
                    .c = state.o.data(),
                    .c_stride = state.columns,
                    .rows = q.rows,
                    .panels = state.columns / kPanel,
                    .depth = keys.size(),
                    .accumulate = true});
}

void store_output_row(const Kernels& kernels, const SoftmaxState& state, std::int64_t r, std::int64_t head_dim_v,
                      Dtype dtype, TileOutput& out) {
  const std::span<float> stored(out.o + r * head_dim_v, static_cast<std::size_t>(head_dim_v));
  std::copy_n(state.o.data() + r * state.columns, head_dim_v, stored.data());
  // fp8 saturates, so that an infinity shows before the rounding only; in fp16 it may arise from the rounding.
  const std::int64_t before = kernels.count_nonfinite(stored.data(), head_dim_v);
  round_to(stored, dtype);
  out.nonfinite_outputs += std::max(before, kernels.count_nonfinite(stored.data(), head_dim_v));
}

float shift_of(float row_maximum) {
  return row_maximum == kMinusInfinity ? 0.0F : row_maximum;
}

}  // namespace hbmscope::numerics
