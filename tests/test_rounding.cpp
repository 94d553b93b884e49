#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/rounding.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace hbmscope;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::uint32_t last_finite_code(Dtype dtype) {
  return encode(static_cast<float>(info(dtype).max), dtype);
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

#if defined(__x86_64__)
__attribute__((target("avx2,f16c"))) float hardware_fp16(float value) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT)));
}
#endif

}  // namespace

TEST_CASE("fp16 addition depends on the order: (1000 + 0.2) + 0.2 = 1000 but 1000 + (0.2 + 0.2) = 1000.5") {
  const auto add = [](float a, float b) { return round_to(a + b, Dtype::fp16); };
  const float fifth = round_to(0.2F, Dtype::fp16);
  CHECK(add(add(1000.0F, fifth), fifth) == 1000.0F);
  CHECK(add(1000.0F, add(fifth, fifth)) == 1000.5F);
}

TEST_CASE("bf16 loses the small terms in either order: its numbers near 1000 are 4 apart") {
  const auto add = [](float a, float b) { return round_to(a + b, Dtype::bf16); };
  const float fifth = round_to(0.2F, Dtype::bf16);
  CHECK(add(add(1000.0F, fifth), fifth) == 1000.0F);
  CHECK(add(1000.0F, add(fifth, fifth)) == 1000.0F);
  CHECK(ulp(1000.0, Dtype::bf16) == 4.0);
}

TEST_CASE("every code of fp16, bf16 and fp8 survives decoding, rounding and encoding") {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16, Dtype::fp8}) {
    CAPTURE(info(dtype).name);
    const std::uint32_t codes = 1U << (8 * info(dtype).bytes);
    std::uint32_t broken = 0;
    std::uint32_t nans = 0;
    for (std::uint32_t code = 0; code < codes; ++code) {
      const float value = decode(code, dtype);
      if (std::isnan(value)) {
        ++nans;
        broken += std::isnan(round_to(value, dtype)) && std::isnan(decode(encode(value, dtype), dtype)) ? 0U : 1U;
      } else {
        broken += same(round_to(value, dtype), value) && encode(value, dtype) == code ? 0U : 1U;
      }
    }
    CHECK(broken == 0);
    // NaN: all non-zero fractions of the top exponent, both signs; E4M3 has one code a sign and no infinity.
    CHECK(nans == (dtype == Dtype::fp8 ? 2U : 2U * ((1U << info(dtype).mantissa_bits) - 1U)));
  }
}

TEST_CASE("between neighbours the nearer wins, and half-way the even code") {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16, Dtype::fp8}) {
    CAPTURE(info(dtype).name);
    std::uint32_t broken = 0;
    for (std::uint32_t code = 0; code < last_finite_code(dtype); ++code) {
      const float low = decode(code, dtype);
      const float high = decode(code + 1, dtype);
      const float half_way = low + (high - low) / 2;
      const bool good = same(round_to(half_way, dtype), code % 2 == 0 ? low : high) &&
                        same(round_to(std::nextafter(half_way, 0.0F), dtype), low) &&
                        same(round_to(std::nextafter(half_way, kInfinity), dtype), high) &&
                        same(round_to(-half_way, dtype), code % 2 == 0 ? -low : -high);
      broken += good ? 0U : 1U;
    }
    CHECK(broken == 0);
  }
}

TEST_CASE("beyond the range fp16 and bf16 overflow to infinity, fp8 saturates at 448") {
  CHECK(round_to(65504.0F, Dtype::fp16) == 65504.0F);
  CHECK(round_to(65519.996F, Dtype::fp16) == 65504.0F);
  CHECK(round_to(65520.0F, Dtype::fp16) == kInfinity);
  CHECK(round_to(-1e30F, Dtype::fp16) == -kInfinity);
  CHECK(round_to(-kInfinity, Dtype::fp16) == -kInfinity);
  CHECK(round_to(3.4e38F, Dtype::bf16) == kInfinity);
  CHECK(round_to(449.0F, Dtype::fp8) == 448.0F);
  CHECK(round_to(-3e38F, Dtype::fp8) == -448.0F);
  CHECK(round_to(kInfinity, Dtype::fp8) == 448.0F);
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16, Dtype::fp8}) {
    CHECK(std::isnan(round_to(std::numeric_limits<float>::quiet_NaN(), dtype)));
    CHECK(std::isnan(round_to(std::bit_cast<float>(0x7f800001U), dtype)));
    CHECK(same(round_to(-0.0F, dtype), -0.0F));
  }
}

TEST_CASE("a whole array is rounded as each of its values is") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16, Dtype::fp8}) {
    std::vector<float> values;
    for (std::uint32_t bits = 12345; values.size() < 100003; bits += 42949U)
      values.push_back(std::bit_cast<float>(bits));
    const std::vector<float> before = values;
    round_to(values, dtype);
    std::uint32_t broken = 0;
    for (std::size_t i = 0; i < values.size(); ++i) broken += same(values[i], round_to(before[i], dtype)) ? 0U : 1U;
    CHECK(broken == 0);
  }
}

#if defined(__x86_64__)
TEST_CASE("fp16 rounding is the processor's own") {
  if (__builtin_cpu_supports("avx2") == 0) {  // a processor with AVX2 has F16C too
    MESSAGE("skipped: this processor converts no fp16");
    return;
  }
  std::uint32_t broken = 0;
  std::uint32_t bits = 0;
  do {
    const float value = std::bit_cast<float>(bits);
    const float ours = round_to(value, Dtype::fp16);
    broken += std::isnan(value) ? (std::isnan(ours) ? 0U : 1U) : (same(ours, hardware_fp16(value)) ? 0U : 1U);
    bits += 4093U;
  } while (bits >= 4093U);
  CHECK(broken == 0);
}
#endif

TEST_CASE("ulp is the distance to the next number") {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16, Dtype::fp8}) {
    std::uint32_t broken = 0;
    for (std::uint32_t code = 0; code < last_finite_code(dtype); ++code) {
      const double low = static_cast<double>(decode(code, dtype));
      const double high = static_cast<double>(decode(code + 1, dtype));
      broken += ulp(low, dtype) == high - low && ulp(-low, dtype) == high - low ? 0U : 1U;
    }
    CHECK(broken == 0);
  }
  CHECK(ulp(1.0, Dtype::fp32) == std::ldexp(1.0, -23));
  CHECK(std::isnan(ulp(std::numeric_limits<double>::infinity(), Dtype::fp16)));
}
