#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "helpers.hpp"
#include "simulate/numerics/numerics.hpp"

/// Shapes, inputs and the definition of attention for test_numerics*.cpp.
namespace hbmscope::testing {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

inline RowSample all_rows(const AttentionShape& shape) {
  RowSample sample{std::vector<std::int64_t>(static_cast<std::size_t>(shape.batch * shape.num_heads)),
                   std::vector<std::int64_t>(static_cast<std::size_t>(shape.seqlen_q)), true};
  std::iota(sample.batch_heads.begin(), sample.batch_heads.end(), 0);
  std::iota(sample.rows.begin(), sample.rows.end(), 0);
  return sample;
}

inline AttentionShape one_head(std::int64_t seqlen_q, std::int64_t seqlen_kv, std::int64_t head_dim,
                               std::int64_t head_dim_v) {
  AttentionShape shape;
  shape.seqlen_q = seqlen_q;
  shape.seqlen_kv = seqlen_kv;
  shape.head_dim = head_dim;
  shape.head_dim_v = head_dim_v;
  return shape;
}

inline TilePlan fp32_scores() {
  TilePlan plan;
  plan.fp32_scores = true;
  return plan;
}

struct Arrays {
  std::vector<float> q, k, v;
};

inline Arrays constant_arrays(const AttentionShape& s, float q, float k, float v) {
  const auto count = [&](std::int64_t heads, std::int64_t rows, std::int64_t width) {
    return static_cast<std::size_t>(s.batch * heads * rows * width);
  };
  return {std::vector<float>(count(s.num_heads, s.seqlen_q, s.head_dim), q),
          std::vector<float>(count(s.num_kv_heads, s.seqlen_kv, s.head_dim), k),
          std::vector<float>(count(s.num_kv_heads, s.seqlen_kv, s.head_dim_v), v)};
}

inline Arrays random_arrays(const AttentionShape& s, std::uint64_t seed) {
  const RandomInputs random(seed, s.dtype);
  Arrays arrays = constant_arrays(s, 0, 0, 0);
  const auto fill = [&](Tensor tensor, std::int64_t heads, std::int64_t rows, std::int64_t width,
                        std::vector<float>& into) {
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t r = 0; r < rows; ++r) {
          const auto first = static_cast<std::size_t>(((b * heads + h) * rows + r) * width);
          random.read_row(tensor, b, h, r, std::span(into).subspan(first, static_cast<std::size_t>(width)));
        }
      }
    }
  };
  fill(Tensor::Q, s.num_heads, s.seqlen_q, s.head_dim, arrays.q);
  fill(Tensor::K, s.num_kv_heads, s.seqlen_kv, s.head_dim, arrays.k);
  fill(Tensor::V, s.num_kv_heads, s.seqlen_kv, s.head_dim_v, arrays.v);
  return arrays;
}

/// Attention straight from its definition, element by element in fp64, with the mask asked about every single pair.
inline ReferenceResult by_definition(const AttentionShape& s, const Arrays& arrays) {
  ReferenceResult result;
  const auto at = [](const std::vector<float>& a, std::int64_t i) {
    return static_cast<double>(a[static_cast<std::size_t>(i)]);
  };
  for (std::int64_t bh = 0; bh < s.batch * s.num_heads; ++bh) {
    const std::int64_t b = bh / s.num_heads;
    const std::int64_t kv = b * s.num_kv_heads + bh % s.num_heads / s.group_size();
    for (std::int64_t r = 0; r < s.seqlen_q; ++r) {
      std::vector<double> weights;
      std::vector<std::int64_t> keys;
      for (std::int64_t c = 0; c < s.keys_of(b); ++c) {
        if (!s.mask.visible(r, c, s.mask_offset())) continue;
        double dot = 0;
        for (std::int64_t i = 0; i < s.head_dim; ++i) {
          dot += at(arrays.q, (bh * s.seqlen_q + r) * s.head_dim + i) *
                 at(arrays.k, (kv * s.seqlen_kv + c) * s.head_dim + i);
        }
        weights.push_back(std::exp(dot / std::sqrt(static_cast<double>(s.head_dim))));
        keys.push_back(c);
      }
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      result.fully_masked_rows += keys.empty() ? 1 : 0;
      result.lse.push_back(std::log(sum));
      for (std::int64_t i = 0; i < s.head_dim_v; ++i) {
        double o = 0;
        for (std::size_t j = 0; j < keys.size(); ++j) {
          o += weights[j] / sum * at(arrays.v, (kv * s.seqlen_kv + keys[j]) * s.head_dim_v + i);
        }
        result.o.push_back(o);
      }
    }
  }
  return result;
}

/// Infinities of the same sign differ by 0; NaN anywhere differs by infinity.
template <class A, class B>
double max_difference(const std::vector<A>& a, const std::vector<B>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]);
    const double y = static_cast<double>(b[i]);
    if (x == y) continue;
    const double difference = std::fabs(x - y);
    most = std::max(most, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
  }
  return most;
}

struct Case {
  AttentionShape shape;
  TilePlan plan;
};

inline Case random_case(std::mt19937_64& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  Case c;
  AttentionShape& s = c.shape;
  s.batch = pick(1, 2);
  s.num_kv_heads = pick(1, 2);
  s.num_heads = s.num_kv_heads * pick(1, 3);
  s.seqlen_q = pick(1, 70);
  s.seqlen_kv = pick(1, 90);
  s.head_dim = pick(1, 40);
  s.head_dim_v = pick(1, 40);
  s.dtype = kDtypes[static_cast<std::size_t>(pick(0, 3))].dtype;
  const std::int64_t mask = pick(0, 3);
  if (mask == 1) s.mask = Mask::causal();
  if (mask >= 2) s.mask = {pick(0, 20), pick(-3, 20), Alignment::bottom_right};
  if (mask == 3) s.mask.window_left.reset();
  if (pick(0, 1) == 1) s.mask.alignment = Alignment::top_left;
  if (pick(0, 2) == 0) {
    for (std::int64_t b = 0; b < s.batch; ++b) s.kv_lengths.push_back(pick(0, s.seqlen_kv));
  }
  c.plan.block_q = pick(1, 40);
  c.plan.block_kv = pick(1, 40);
  c.plan.num_kv_splits = pick(1, 6);
  c.plan.fp32_scores = pick(0, 1) == 1;
  if (pick(0, 1) == 1) c.plan.variant = FlashV1Variant::released;
  return c;
}

inline std::string describe(const Case& c) {
  const AttentionShape& s = c.shape;
  std::string text;
  for (const std::string_view word : {info(s.dtype).name, s.mask.kind(), name(s.mask.alignment)})
    text.append(word).append(" ");
  for (const std::int64_t n : {s.batch, s.num_heads, s.num_kv_heads, s.seqlen_q, s.seqlen_kv, s.head_dim, s.head_dim_v,
                               c.plan.block_q, c.plan.block_kv, c.plan.num_kv_splits}) {
    text += ' ';
    text += std::to_string(n);
  }
  return text;
}

inline constexpr std::string_view kAlgorithms[] = {"naive", "flash_v1", "flash_v2", "split_kv"};

}  // namespace hbmscope::testing
