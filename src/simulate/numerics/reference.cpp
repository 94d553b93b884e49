#include "simulate/numerics/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "simulate/numerics/kernel_choice.hpp"
#include "simulate/numerics/parallel.hpp"

namespace hbmscope {

namespace numerics {

namespace {

/// Softmax of the visible part of a row of scores, in place and 0 elsewhere. Returns the LSE.
double softmax_row(std::span<double> row, KeyRange visible, double scale, double& max_abs_score) {
  const auto live = row.subspan(static_cast<std::size_t>(visible.first), static_cast<std::size_t>(visible.size()));
  double m = -std::numeric_limits<double>::infinity();
  for (double& s : live) {
    s *= scale;
    m = std::max(m, s);
    max_abs_score = std::max(max_abs_score, std::fabs(s));
  }
  double l = 0;
  for (double& s : live) l += s = std::exp(s - m);
  for (double& p : live) p /= l;
  std::ranges::fill(row.first(static_cast<std::size_t>(visible.first)), 0.0);
  std::ranges::fill(row.subspan(static_cast<std::size_t>(visible.last)), 0.0);
  return m + std::log(l);
}

/// Rows [first, first + q.rows) of one head; returns the largest scaled score.
double reference_tile(const Kernels& kernels, const KvHead& kv, const QueryTile& q, double* o, double* lse) {
  const std::int64_t keys = whole_panels(kv.keys);
  const std::vector<double> queries(q.q.begin(), q.q.end());
  Aligned<double> s(static_cast<std::size_t>(q.rows * keys));
  kernels.multiply_fp64({.a = queries.data(),
                         .a_stride = q.head_dim,
                         .b = kv.k.data(),
                         .panel_stride = kv.head_dim * kPanel,
                         .c = s.data(),
                         .c_stride = keys,
                         .rows = q.rows,
                         .panels = keys / kPanel,
                         .depth = kv.head_dim,
                         .accumulate = false});

  double max_abs_score = 0;
  const double scale = 1 / std::sqrt(static_cast<double>(kv.head_dim));
  for (std::int64_t r = 0; r < q.rows; ++r) {
    const KeyRange visible = q.visible[static_cast<std::size_t>(r)];
    const std::span<double> row(s.data() + r * keys, static_cast<std::size_t>(keys));
    if (visible.empty()) {
      std::ranges::fill(row, 0.0);
      lse[r] = -std::numeric_limits<double>::infinity();
    } else {
      lse[r] = softmax_row(row, visible, scale, max_abs_score);
    }
  }

  const std::int64_t columns = whole_panels(kv.head_dim_v);
  Aligned<double> padded(static_cast<std::size_t>(q.rows * columns));
  if (!q.any_visible.empty()) {
    kernels.multiply_fp64({.a = s.data() + q.any_visible.first,
                           .a_stride = keys,
                           .b = kv.v.data() + q.any_visible.first * kPanel,
                           .panel_stride = kv.v_panel_stride(),
                           .c = padded.data(),
                           .c_stride = columns,
                           .rows = q.rows,
                           .panels = columns / kPanel,
                           .depth = q.any_visible.size(),
                           .accumulate = false});
  }
  for (std::int64_t r = 0; r < q.rows; ++r)
    std::copy_n(padded.data() + r * columns, kv.head_dim_v, o + r * kv.head_dim_v);
  return max_abs_score;
}

}  // namespace

std::vector<HeadGroup> group_heads(const AttentionShape& shape, const RowSample& sample) {
  std::vector<HeadGroup> groups;
  for (std::size_t i = 0; i < sample.batch_heads.size(); ++i) {
    const std::int64_t batch = sample.batch_heads[i] / shape.num_heads;
    const std::int64_t kv_head = sample.batch_heads[i] % shape.num_heads / shape.group_size();
    // The heads ascend, so those of one group are neighbours.
    if (groups.empty() || groups.back().batch != batch || groups.back().kv_head != kv_head)
      groups.push_back({batch, kv_head, {}});
    groups.back().places.push_back(static_cast<std::int64_t>(i));
  }
  return groups;
}

ReferenceResult empty_reference(const AttentionShape& shape, const RowSample& sample) {
  const std::size_t rows = sample.batch_heads.size() * sample.rows.size();
  return {std::vector<double>(rows * static_cast<std::size_t>(shape.head_dim_v)), std::vector<double>(rows)};
}

void reference_group(const AttentionShape& shape, const RowSample& sample, const HeadGroup& group, const KvHead& kv,
                     const InputSource& inputs, const Kernels& kernels, int threads, ReferenceResult& reference) {
  const auto rows = static_cast<std::int64_t>(sample.rows.size());
  const auto heads = static_cast<std::int64_t>(group.places.size());
  constexpr std::int64_t kMostScores = std::int64_t{1} << 20;  // of one tile: 8 MiB
  const std::int64_t tile_rows = std::clamp<std::int64_t>(kMostScores / std::max<std::int64_t>(kv.keys, 1), 1, 12);
  const std::int64_t tiles = (rows + tile_rows - 1) / tile_rows;
  std::vector<double> max_abs_scores(static_cast<std::size_t>(tiles * heads));
  parallel_for(tiles * heads, threads, [&](std::int64_t i) {
    const std::int64_t place = group.places[static_cast<std::size_t>(i / tiles)];
    const std::int64_t first = i % tiles * tile_rows;
    const std::int64_t count = std::min(tile_rows, rows - first);
    const std::int64_t head = sample.batch_heads[static_cast<std::size_t>(place)] % shape.num_heads;
    const QueryTile q =
        load_queries(shape, inputs, group.batch, head,
                     std::span(sample.rows).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
    max_abs_scores[static_cast<std::size_t>(i)] =
        reference_tile(kernels, kv, q, reference.o.data() + (place * rows + first) * shape.head_dim_v,
                       reference.lse.data() + place * rows + first);
  });
  for (const double score : max_abs_scores) reference.max_abs_score = std::max(reference.max_abs_score, score);
  for (const std::int64_t row : sample.rows) {
    if (visible_keys(shape, group.batch, row).empty()) reference.fully_masked_rows += heads;
  }
}

}  // namespace numerics

ReferenceResult reference_fp64(const AttentionShape& shape, const RowSample& sample, const InputSource& inputs,
                               const CpuOptions& options) {
  const numerics::Kernels& kernels = numerics::choose_kernels(options.kernels);
  const int threads = numerics::thread_count(options.threads);
  ReferenceResult reference = numerics::empty_reference(shape, sample);
  for (const numerics::HeadGroup& group : numerics::group_heads(shape, sample)) {
    const numerics::KvHead kv = numerics::load_kv_head(shape, inputs, group.batch, group.kv_head, threads);
    numerics::reference_group(shape, sample, group, kv, inputs, kernels, threads, reference);
  }
  return reference;
}

}  // namespace hbmscope
