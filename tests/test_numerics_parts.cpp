// What the numerics are made of: the vector kernels, random inputs, the sample of rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/rounding.hpp"
#include "numerics_cases.hpp"
#include "simulate/numerics/kernel_choice.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

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
    CHECK(error.hint() == "it runs: naive, flash_v1, flash_v2, flash_v3, split_kv");
  }
  CHECK_THROWS_AS(numerics::choose_kernels("mmx"), Error);
  CHECK(std::string(numerics::choose_kernels("portable").name) == "portable");
}
