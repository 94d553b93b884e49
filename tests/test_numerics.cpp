#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/rounding.hpp"
#include "simulate/numerics/kernel_choice.hpp"
#include "simulate/numerics/numerics.hpp"

using namespace hbmscope;

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

RowSample all_rows(const AttentionShape& shape) {
  RowSample sample{std::vector<std::int64_t>(static_cast<std::size_t>(shape.batch * shape.num_heads)),
                   std::vector<std::int64_t>(static_cast<std::size_t>(shape.seqlen_q)), true};
  std::iota(sample.batch_heads.begin(), sample.batch_heads.end(), 0);
  std::iota(sample.rows.begin(), sample.rows.end(), 0);
  return sample;
}

AttentionShape one_head(std::int64_t seqlen_q, std::int64_t seqlen_kv, std::int64_t head_dim, std::int64_t head_dim_v) {
  AttentionShape shape;
  shape.seqlen_q = seqlen_q;
  shape.seqlen_kv = seqlen_kv;
  shape.head_dim = head_dim;
  shape.head_dim_v = head_dim_v;
  return shape;
}

TilePlan tiles(std::int64_t block_q, std::int64_t block_kv, std::int64_t num_kv_splits = 1) {
  TilePlan plan;
  plan.block_q = block_q;
  plan.block_kv = block_kv;
  plan.num_kv_splits = num_kv_splits;
  return plan;
}

TilePlan fp32_scores() {
  TilePlan plan;
  plan.fp32_scores = true;
  return plan;
}

struct Arrays {
  std::vector<float> q, k, v;
};

Arrays constant_arrays(const AttentionShape& s, float q, float k, float v) {
  const auto count = [&](std::int64_t heads, std::int64_t rows, std::int64_t width) {
    return static_cast<std::size_t>(s.batch * heads * rows * width);
  };
  return {std::vector<float>(count(s.num_heads, s.seqlen_q, s.head_dim), q),
          std::vector<float>(count(s.num_kv_heads, s.seqlen_kv, s.head_dim), k),
          std::vector<float>(count(s.num_kv_heads, s.seqlen_kv, s.head_dim_v), v)};
}

Arrays random_arrays(const AttentionShape& s, std::uint64_t seed) {
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
ReferenceResult by_definition(const AttentionShape& s, const Arrays& arrays) {
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

Case random_case(std::mt19937_64& random) {
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

std::string describe(const Case& c) {
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

constexpr std::string_view kAlgorithms[] = {"naive", "flash_v1", "flash_v2", "split_kv"};

}  // namespace

TEST_CASE("every algorithm is softmax attention, whatever the shape, mask, grouping, dtype and tiles") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 400; ++i) {
    const Case c = random_case(random);
    CAPTURE(describe(c));
    const Arrays arrays = random_arrays(c.shape, static_cast<std::uint64_t>(i));
    const ArrayInputs inputs(c.shape, arrays.q, arrays.k, arrays.v);
    const ReferenceResult truth = by_definition(c.shape, arrays);
    const RowSample sample = all_rows(c.shape);

    const ReferenceResult reference = reference_fp64(c.shape, sample, inputs);
    CHECK(max_difference(reference.o, truth.o) < 1e-12);
    CHECK(max_difference(reference.lse, truth.lse) < 1e-12);
    CHECK(reference.fully_masked_rows == truth.fully_masked_rows);

    // Rounding S (|score| < 16, |V| < 5.4), P and O; S is stored unscaled, so its error shrinks by sqrt(head_dim) with
    // its magnitude.
    const double half_ulp = ulp(1.0, c.shape.dtype) / 2;
    const double allowed = std::max(2e-5, 40 * half_ulp);
    for (const std::string_view algorithm : kAlgorithms) {
      CAPTURE(algorithm);
      const AttentionResult result = run_cpu(algorithm, c.shape, c.plan, sample, inputs);
      CHECK(max_difference(result.o, truth.o) < allowed);
      const bool scores_rounded = algorithm == "naive" && !c.plan.fp32_scores;
      CHECK(max_difference(result.lse, truth.lse) < (scores_rounded ? std::max(1e-4, 16 * half_ulp) : 1e-4));
      CHECK(result.nonfinite_scores == 0);
      CHECK(result.nonfinite_outputs == 0);
    }
  }
}

TEST_CASE("the check passes for every algorithm on shapes of ordinary size") {
  std::vector<NamedPlan> algorithms;
  for (const std::string_view algorithm : kAlgorithms) {
    algorithms.push_back({algorithm, tiles(64, 48, 3)});
    algorithms.back().plan.variant = FlashV1Variant::released;
  }
  for (const DtypeInfo& type : kDtypes) {
    for (const Mask& mask : {Mask::none(), Mask::causal(), Mask{40, 7, Alignment::top_left}}) {
      AttentionShape shape = one_head(300, 333, 64, 64);
      shape.num_heads = 4;
      shape.num_kv_heads = 2;
      shape.mask = mask;
      shape.dtype = type.dtype;
      CAPTURE(type.name);
      CAPTURE(mask.kind());
      for (const Exactness& check : check_exactness(shape, algorithms, all_rows(shape), 3)) {
        CHECK(check.within_tolerance);
        CHECK(check.max_abs_error > 0);
        CHECK(check.rmse <= check.max_abs_error);
        CHECK(check.rows_checked == 4 * 300);
        CHECK(check.complete);
      }
    }
  }
}

TEST_CASE("flash_v1 with O stored in fp16 after every pass loses what an fp32 Otmp keeps") {
  AttentionShape shape = one_head(64, 4096, 128, 128);
  TilePlan paper = tiles(64, 32);
  TilePlan released = paper;
  released.variant = FlashV1Variant::released;
  const std::vector<NamedPlan> algorithms{{"flash_v1", paper}, {"flash_v1", released}};
  const std::vector<Exactness> checks = check_exactness(shape, algorithms, all_rows(shape), 1);
  CHECK(checks[0].rmse > 2 * checks[1].rmse);
}

TEST_CASE("naive rounded is not bitwise what flash_v2 gives, and is bitwise itself") {
  AttentionShape shape = one_head(64, 256, 128, 128);
  const std::vector<NamedPlan> algorithms{{"flash_v2", {}}, {"naive", {}}};
  const std::vector<Exactness> checks = check_exactness(shape, algorithms, all_rows(shape), 1);
  CHECK_FALSE(checks[0].bitwise_equal_to_naive);
  CHECK(checks[1].bitwise_equal_to_naive);
  CHECK(checks[0].naive_max_abs_error == checks[1].max_abs_error);
}

TEST_CASE("a fully masked row has O = 0 exactly, LSE = -inf and no NaN") {
  AttentionShape shape = one_head(8, 3, 16, 16);
  shape.mask = Mask::causal();  // bottom right: query r sees keys up to r - 5, so the first five see none
  const RowSample sample = all_rows(shape);
  for (const std::string_view algorithm : kAlgorithms) {
    CAPTURE(algorithm);
    const AttentionResult result = run_cpu(algorithm, shape, tiles(0, 2, 2), sample, 1);
    for (std::size_t r = 0; r < 5; ++r) {
      CHECK(result.lse[r] == kMinusInfinity);
      for (std::size_t c = 0; c < 16; ++c) CHECK(result.o[r * 16 + c] == 0.0F);
    }
    for (std::size_t r = 5; r < 8; ++r) CHECK(std::isfinite(result.lse[r]));
  }
  const std::vector<NamedPlan> algorithms{{"flash_v2", {}}};
  const Exactness check = check_exactness(shape, algorithms, sample, 1).front();
  CHECK(check.fully_masked_rows == 5);
  CHECK(check.within_tolerance);
}

TEST_CASE("V = 1 gives O = 1 with 65 keys, one beyond a tile") {
  AttentionShape shape = one_head(65, 65, 64, 64);
  shape.dtype = Dtype::fp32;
  Arrays arrays = random_arrays(shape, 5);
  std::ranges::fill(arrays.v, 1.0F);
  const ArrayInputs inputs(shape, arrays.q, arrays.k, arrays.v);
  for (const std::string_view algorithm : kAlgorithms) {
    const AttentionResult result = run_cpu(algorithm, shape, tiles(64, 64, 2), all_rows(shape), inputs);
    CHECK(max_difference(result.o, std::vector<double>(result.o.size(), 1.0)) < 1e-6);
  }
}

TEST_CASE("what lies beyond a batch entry's keys never matters, not even NaN") {
  for (const std::int64_t keys : {1, 15, 16, 17, 40}) {
    AttentionShape shape = one_head(33, 50, 20, 12);
    shape.kv_lengths = {keys};
    shape.mask = {30, 30, Alignment::top_left};
    const Arrays clean = random_arrays(shape, 9);
    Arrays poisoned = clean;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::fill(poisoned.k.begin() + keys * shape.head_dim, poisoned.k.end(), nan);
    std::fill(poisoned.v.begin() + keys * shape.head_dim_v, poisoned.v.end(), nan);
    const ArrayInputs with(shape, poisoned.q, poisoned.k, poisoned.v);
    const ArrayInputs without(shape, clean.q, clean.k, clean.v);
    for (const std::string_view algorithm : kAlgorithms) {
      CAPTURE(algorithm);
      const TilePlan plan = tiles(0, 24, 2);
      const AttentionResult result = run_cpu(algorithm, shape, plan, all_rows(shape), with);
      CHECK(result.o == run_cpu(algorithm, shape, plan, all_rows(shape), without).o);
      CHECK(result.nonfinite_outputs == 0);
      CHECK(result.nonfinite_scores == 0);
    }
  }
}

TEST_CASE("a NaN in the inputs makes the check fail, although the reference is NaN too") {
  AttentionShape shape = one_head(20, 30, 16, 16);
  Arrays arrays = random_arrays(shape, 2);
  arrays.v[7] = std::numeric_limits<float>::quiet_NaN();
  const ArrayInputs inputs(shape, arrays.q, arrays.k, arrays.v);
  const std::vector<NamedPlan> algorithms{{"naive", {}}, {"flash_v1", {}}, {"flash_v2", {}}, {"split_kv", {}}};
  for (const Exactness& check : check_exactness(shape, algorithms, all_rows(shape), inputs)) {
    CHECK_FALSE(check.within_tolerance);
    CHECK(check.max_abs_error == std::numeric_limits<double>::infinity());
    CHECK(check.nonfinite_outputs == 20);  // column 7 of every row
  }
}

TEST_CASE("S stored in fp16 overflows for q = k = 256, d = 128, and that is reported") {
  AttentionShape shape = one_head(4, 40, 128, 128);
  const double score = 128.0 * 256.0 * 256.0;
  REQUIRE(score == 8388608.0);
  REQUIRE(score / std::sqrt(128.0) > info(Dtype::fp16).max);  // 741455: scaling first would not have saved it
  const Arrays arrays = constant_arrays(shape, 256, 256, 1);
  const ArrayInputs inputs(shape, arrays.q, arrays.k, arrays.v);
  const std::vector<NamedPlan> algorithms{{"naive", {}}, {"naive", fp32_scores()}, {"flash_v2", {}}};
  const std::vector<Exactness> checks = check_exactness(shape, algorithms, all_rows(shape), inputs);
  CHECK(checks[0].nonfinite_scores == 4 * 40);
  CHECK(checks[0].nonfinite_outputs == 4 * 128);
  CHECK_FALSE(checks[0].within_tolerance);
  for (const std::size_t in_fp32 : {1U, 2U}) {
    CHECK(checks[in_fp32].nonfinite_scores == 0);
    CHECK(checks[in_fp32].nonfinite_outputs == 0);
    CHECK(checks[in_fp32].within_tolerance);
  }
}

TEST_CASE("O that overflows only when it is rounded to fp16 is counted too") {
  constexpr std::int64_t kKeys = 27;
  AttentionShape shape = one_head(1, kKeys, 16, 16);
  const float p = round_to(1.0F / kKeys, Dtype::fp16);
  REQUIRE(p * kKeys * 65504.0F >= 65520.0F);  // P rounds up, so that the average of values of 65504 is beyond the range
  REQUIRE(p * kKeys * 65504.0F < std::numeric_limits<float>::max());
  const Arrays arrays = constant_arrays(shape, 0, 0, 65504);
  const AttentionResult result =
      run_cpu("naive", shape, {}, all_rows(shape), ArrayInputs(shape, arrays.q, arrays.k, arrays.v));
  CHECK(result.nonfinite_scores == 0);
  CHECK(result.nonfinite_outputs == 16);
}

TEST_CASE("the number of threads changes no bit, and the instruction set nothing beyond rounding") {
  AttentionShape shape = one_head(75, 130, 48, 40);
  shape.batch = 2;
  shape.num_heads = 4;
  shape.num_kv_heads = 2;
  shape.mask = Mask::causal();
  const RandomInputs inputs(11, shape.dtype);
  const RowSample sample = all_rows(shape);
  const ReferenceResult reference = reference_fp64(shape, sample, inputs);
  for (const std::string_view algorithm : kAlgorithms) {
    const TilePlan plan = tiles(32, 40, 2);
    for (const numerics::Kernels* kernels : numerics::usable_kernels()) {
      CAPTURE(algorithm);
      CAPTURE(std::string(kernels->name));
      const AttentionResult one = run_cpu(algorithm, shape, plan, sample, inputs, {1, kernels->name});
      for (const int threads : {2, 3, 7}) {
        const AttentionResult many = run_cpu(algorithm, shape, plan, sample, inputs, {threads, kernels->name});
        CHECK(many.o == one.o);
        CHECK(many.lse == one.lse);
      }
      CHECK(max_difference(one.o, reference.o) < 5e-3);
      CHECK(max_difference(reference.o, reference_fp64(shape, sample, inputs, {1, kernels->name}).o) < 1e-13);
    }
  }
}

TEST_CASE("a sampled row is bitwise the row of the complete run") {
  AttentionShape shape = one_head(90, 100, 24, 24);
  shape.num_heads = 3;
  shape.num_kv_heads = 3;
  shape.mask = Mask::causal();
  const RowSample some{{1}, {0, 40, 41, 89}, false};
  for (const std::string_view algorithm : kAlgorithms) {
    const TilePlan plan = tiles(16, 32, 2);
    const AttentionResult all = run_cpu(algorithm, shape, plan, all_rows(shape), 4);
    const AttentionResult few = run_cpu(algorithm, shape, plan, some, 4);
    for (std::size_t i = 0; i < some.rows.size(); ++i) {
      const std::size_t row = 1 * 90 + static_cast<std::size_t>(some.rows[i]);
      CHECK(few.lse[i] == all.lse[row]);
      CHECK(std::equal(few.o.begin() + static_cast<std::ptrdiff_t>(i * 24),
                       few.o.begin() + static_cast<std::ptrdiff_t>(i * 24 + 24),
                       all.o.begin() + static_cast<std::ptrdiff_t>(row * 24)));
    }
  }
}

TEST_CASE("exp of the vector kernels is within 2e-7 of exp, exactly 1 at 0 and 0 at -inf") {
  for (const numerics::Kernels* kernels : numerics::usable_kernels()) {
    CAPTURE(std::string(kernels->name));
    double worst = 0;
    for (int block = 0; block < 200000; ++block) {
      alignas(64) float row[16];
      for (int i = 0; i < 16; ++i) row[i] = -static_cast<float>(block * 16 + i) * 2.72e-5F;
      float before[16];
      std::copy_n(row, 16, before);
      kernels->exp_row(row, 16, 0.0F);
      for (int i = 0; i < 16; ++i)
        worst = std::max(worst, std::fabs(static_cast<double>(row[i]) / std::exp(static_cast<double>(before[i])) - 1));
    }
    CHECK(worst < 2e-7);
    alignas(64) float special[16] = {0.0F, kMinusInfinity, std::numeric_limits<float>::quiet_NaN(), -100.0F};
    kernels->exp_row(special, 16, 0.0F);
    CHECK(special[0] == 1.0F);
    CHECK(special[1] == 0.0F);
    CHECK(std::isnan(special[2]));
    CHECK(special[3] == 0.0F);
  }
}

TEST_CASE("random inputs are standard normal numbers") {
  const RandomInputs inputs(42, Dtype::fp32);
  std::vector<float> values(1 << 20);
  inputs.read_row(Tensor::Q, 0, 0, 0, values);
  std::ranges::sort(values);
  const double n = static_cast<double>(values.size());
  double kolmogorov_smirnov = 0;
  double moments[5] = {};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(values[i]);
    const double below = 0.5 * std::erfc(-x / std::sqrt(2.0));
    kolmogorov_smirnov = std::max(kolmogorov_smirnov, std::fabs(below - (static_cast<double>(i) + 0.5) / n));
    for (int power = 1; power <= 4; ++power) moments[power] += std::pow(x, power) / n;
  }
  CHECK(kolmogorov_smirnov * std::sqrt(n) < 1.63);  // the 1 % level
  CHECK(std::fabs(moments[1]) < 4 / std::sqrt(n));
  CHECK(std::fabs(moments[2] - 1) < 4 * std::sqrt(2 / n));
  CHECK(std::fabs(moments[3]) < 4 * std::sqrt(15 / n));
  CHECK(std::fabs(moments[4] - 3) < 4 * std::sqrt(96 / n));
  CHECK(values.back() > 4.5F);
}

TEST_CASE("random inputs depend on seed, tensor, batch, head, row and column only") {
  const RandomInputs inputs(1, Dtype::fp16);
  std::vector<float> row(65);
  inputs.read_row(Tensor::K, 2, 3, 4, row);
  std::vector<float> shorter(13);
  inputs.read_row(Tensor::K, 2, 3, 4, shorter);
  CHECK(std::equal(shorter.begin(), shorter.end(), row.begin()));
  for (float& value : shorter) value = round_to(value, Dtype::fp16);
  CHECK(std::equal(shorter.begin(), shorter.end(), row.begin()));

  const auto differs = [&](const RandomInputs& from, Tensor tensor, std::int64_t batch, std::int64_t head,
                           std::int64_t r) {
    std::vector<float> other(65);
    from.read_row(tensor, batch, head, r, other);
    return other != row;
  };
  CHECK(differs(RandomInputs(2, Dtype::fp16), Tensor::K, 2, 3, 4));
  CHECK(differs(inputs, Tensor::V, 2, 3, 4));
  CHECK(differs(inputs, Tensor::K, 1, 3, 4));
  CHECK(differs(inputs, Tensor::K, 2, 4, 4));
  CHECK(differs(inputs, Tensor::K, 2, 3, 5));
}

TEST_CASE("random inputs are bitwise the same on every machine") {
  std::vector<float> values(1 << 16);
  RandomInputs(20260101, Dtype::fp32).read_row(Tensor::V, 0, 1, 2, values);
  std::uint64_t checksum = 0;
  for (const float value : values) checksum = numerics::hash(checksum, std::bit_cast<std::uint32_t>(value));
  CHECK(checksum == 7083577469079567541U);
}

TEST_CASE("a sample keeps its limits, covers both ends and is complete where it can be") {
  AttentionShape large = one_head(8192, 8192, 128, 128);
  large.num_heads = 64;
  large.num_kv_heads = 8;
  const RowSample some = sample_rows(large, 256, 4, 1);
  CHECK(some.batch_heads.size() == 4);
  CHECK(some.rows.size() == 256 / 4);
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
    CHECK(sample_rows(large, 256, 4, seed).rows.front() == 0);
    CHECK(sample_rows(large, 256, 4, seed).rows.back() == 8191);
  }
  CHECK(std::ranges::adjacent_find(some.rows, std::greater_equal<>()) == some.rows.end());
  CHECK_FALSE(some.complete);
  CHECK(some.rows == sample_rows(large, 256, 4, 1).rows);
  CHECK(some.rows != sample_rows(large, 256, 4, 2).rows);

  AttentionShape small = one_head(10, 10, 128, 128);
  small.batch = 2;
  small.num_heads = 2;
  small.num_kv_heads = 2;
  const RowSample all = sample_rows(small, 1000, 8, 1);
  CHECK(all.complete);
  CHECK(all.batch_heads == all_rows(small).batch_heads);
  CHECK(all.rows == all_rows(small).rows);

  AttentionShape long_one = one_head(1 << 20, 1 << 20, 128, 128);
  long_one.num_heads = 32;
  long_one.num_kv_heads = 32;
  const RowSample one_head = sample_rows(long_one, 256, 4, 1);
  CHECK(one_head.batch_heads.size() == 1);  // 2^20 keys of 256 elements are all of the 2^28 allowed
  CHECK(one_head.rows.size() == 64);        // 2^34 / 2^28

  long_one.seqlen_kv = kMaxSeqlen;
  CHECK(sample_rows(long_one, 256, 4, 1).batch_heads.empty());
  const std::vector<NamedPlan> algorithms{{"flash_v2", {}}};
  CHECK(check_exactness(long_one, algorithms, sample_rows(long_one, 256, 4, 1), 1).front().rows_checked == 0);
}

TEST_CASE("an unknown algorithm or instruction set is refused with the names there are") {
  const AttentionShape shape = one_head(4, 4, 128, 128);
  try {
    run_cpu("flash_v9", shape, {}, all_rows(shape), 1);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(error.hint() == "it runs: naive, flash_v1, flash_v2, split_kv");
  }
  CHECK_THROWS_AS(numerics::choose_kernels("mmx"), Error);
  CHECK(std::string(numerics::choose_kernels("portable").name) == "portable");
}
