// Every algorithm, as the CPU computes it, against attention's definition.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/rounding.hpp"
#include "numerics_cases.hpp"
#include "simulate/numerics/kernel_choice.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

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

TEST_CASE("errors are counted by powers of two, every element once") {
  const AttentionShape shape = one_head(70, 90, 16, 24);
  const RowSample sample = all_rows(shape);
  for (const std::string_view algorithm : {"naive", "flash_v2"}) {
    CAPTURE(algorithm);
    const NamedPlan named{algorithm, {}};
    const Exactness check = check_exactness(shape, std::span(&named, 1), sample, 5)[0];
    const AttentionResult result = run_cpu(algorithm, shape, {}, sample, 5);
    const ReferenceResult reference = reference_fp64(shape, sample, RandomInputs(5, shape.dtype));
    std::int64_t counted = check.errors.exact, exact = 0;
    for (const ErrorBin& bin : check.errors.bins) {
      std::int64_t elements = 0;
      for (std::size_t i = 0; i < reference.o.size(); ++i) {
        const double error = std::fabs(static_cast<double>(result.o[i]) - reference.o[i]);
        elements += error >= std::exp2(bin.log2) && error < std::exp2(bin.log2 + 1) ? 1 : 0;
      }
      CHECK(bin.elements == elements);
      counted += bin.elements;
    }
    for (std::size_t i = 0; i < reference.o.size(); ++i)
      exact += static_cast<double>(result.o[i]) - reference.o[i] == 0 ? 1 : 0;
    CHECK(check.errors.exact == exact);
    CHECK(counted == 70 * 24);
    CHECK(check.errors.bins.size() > 5);
    CHECK(std::exp2(check.errors.bins.back().log2) <= check.max_abs_error);
    CHECK(std::exp2(check.errors.bins.back().log2 + 1) > check.max_abs_error);
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
