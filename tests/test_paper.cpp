// The papers' claims about I/O beside what their own constants give.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "model/algorithm.hpp"
#include "model/paper.hpp"

using namespace hbmscope;

namespace {

constexpr std::int64_t kM = 65536;  // elements on chip: the textbook example

AttentionShape square(std::int64_t seqlen, std::int64_t head_dim, Dtype dtype = Dtype::fp16) {
  AttentionShape s;
  s.seqlen_q = s.seqlen_kv = seqlen;
  s.head_dim = s.head_dim_v = head_dim;
  s.dtype = dtype;
  return s;
}

PaperClaims claims_of(const AttentionShape& s, std::int64_t sram_elements) {
  return paper_claims(s, Bytes(sram_elements * s.element_bytes()));
}

}  // namespace

TEST_CASE("M = 65,536 elements and d = 64: M / d^2 is 16, but the constants of both algorithms leave a third of it") {
  const std::int64_t N = 8192, d = 64;
  const PaperClaims c = claims_of(square(N, d), kM);
  CHECK(c.sram_bytes.value() == 131072);
  CHECK(c.sram_elements == kM);
  CHECK(c.reduction_m_over_d2 == 16);
  CHECK(c.reduction_with_constants == doctest::Approx(16.0 / 3));  // 4 N^2 over 12 N^2 d^2 / M
  CHECK(c.reduction_n_over_d == N / d);
}

TEST_CASE(
    "Algorithm 1 exactly, N = 8192: 5.06 times fewer bytes than naive, 5.01 with what it initialises, 5.16 in "
    "elements") {
  const std::int64_t N = 8192, d = 64, passes = N / 256;
  const PaperClaims c = claims_of(square(N, d), kM);
  CHECK(c.block_q == 64);    // min(M / 4d, d)
  CHECK(c.block_kv == 256);  // M / 4d
  CHECK(c.naive_elements.value() == 4 * N * N + 4 * N * d);
  CHECK(c.naive_bytes.value() == 2 * c.naive_elements.value());
  CHECK(c.algorithm1_elements.value() == 2 * N * d + passes * (3 * N * d + 4 * N));
  CHECK(c.algorithm1_bytes.value() == 2 * N * d * 2 + passes * (3 * N * d * 2 + 4 * N * 4));  // statistics are fp32
  CHECK(c.algorithm1_bytes_with_init.value() == c.algorithm1_bytes.value() + N * d * 2 + 2 * N * 4);
  CHECK(c.naive_bytes.as_double() / c.algorithm1_bytes.as_double() == doctest::Approx(5.06).epsilon(0.001));
  CHECK(c.naive_bytes.as_double() / c.algorithm1_bytes_with_init.as_double() == doctest::Approx(5.01).epsilon(0.001));
  CHECK(c.naive_elements.as_double() / c.algorithm1_elements.as_double() == doctest::Approx(5.16).epsilon(0.001));
}

TEST_CASE("what Algorithm 1 saves comes near M / 3d^2 as N grows, never near M / d^2") {
  double before = 0;
  for (const std::int64_t N : {1 << 10, 1 << 13, 1 << 16, 1 << 20}) {
    const PaperClaims c = claims_of(square(N, 64), kM);
    const double ratio = c.naive_elements.as_double() / c.algorithm1_elements.as_double();
    CHECK(ratio > before);
    CHECK(ratio < c.reduction_with_constants);
    before = ratio;
  }
  CHECK(before == doctest::Approx(16.0 / 3).epsilon(0.03));  // the four statistics a row stay: 3 d against 3 d + 4
}

TEST_CASE("Theorem 2 counts N d + N^2 for standard attention, N^2 d^2 / M for FlashAttention, each head anew") {
  AttentionShape s = square(8192, 64);
  const double N = 8192, d = 64, M = kM;
  CHECK(claims_of(s, kM).standard_elements == N * d + N * N);
  CHECK(claims_of(s, kM).flash_elements == N * N * d * d / M);
  s.batch = 2;
  s.num_heads = s.num_kv_heads = 3;
  CHECK(claims_of(s, kM).standard_elements == 6 * (N * d + N * N));
  CHECK(claims_of(s, kM).flash_elements == 6 * (N * N * d * d / M));
}

TEST_CASE("where queries and keys differ, the order counts the rows of both, which a cache of keys is mostly made of") {
  AttentionShape s = square(100, 64);
  s.seqlen_kv = 5000;
  CHECK(claims_of(s, kM).standard_elements == 100.0 * 5000 + (100.0 + 5000) * 64);
  CHECK(claims_of(s, kM).flash_elements == doctest::Approx(100.0 * 5000 * 64 * 64 / kM));
}

TEST_CASE("the lower bound changes its form at M = d^2, where both forms are N^2") {
  const double N = 4096, d = 128;
  const auto bound = [&](std::int64_t M) { return claims_of(square(4096, 128), M).lower_bound_elements; };
  CHECK(bound(128 * 128) == N * N);
  // Below, that of matrix multiplication, so writing Q K^T is no loss; above, FlashAttention's own count.
  for (const std::int64_t M : {64 * 64, 100 * 100, 127 * 128}) {
    CHECK(bound(M) == doctest::Approx(N * N * d / std::sqrt(static_cast<double>(M))));
    CHECK(bound(M) < claims_of(square(4096, 128), M).flash_elements);
  }
  for (const std::int64_t M : {129 * 128, 256 * 256, 512 * 512}) {
    CHECK(bound(M) == doctest::Approx(N * N * d * d / static_cast<double>(M)));
    CHECK(bound(M) == claims_of(square(4096, 128), M).flash_elements);
  }
}

TEST_CASE("Algorithm 1's blocks are ceil(M / 4d) keys and min(that, d) queries, at least one of each") {
  for (const std::int64_t d : {1, 63, 64, 128, 256}) {
    for (const std::int64_t M : {1, 255, 257, 4096, 51200, 65536, 116224}) {
      const Algorithm1Blocks blocks = algorithm1_blocks(M, d);
      CAPTURE(d);
      CAPTURE(M);
      CHECK(blocks.block_kv * 4 * d >= M);
      CHECK((blocks.block_kv - 1) * 4 * d < M);
      CHECK(blocks.block_q == std::min(blocks.block_kv, d));
    }
  }
}

TEST_CASE("the theorems count elements: in fp32 the same bytes hold half as many, and the saving halves") {
  const Bytes sram(131072);
  const PaperClaims half = paper_claims(square(8192, 64, Dtype::fp16), sram),
                    single = paper_claims(square(8192, 64, Dtype::fp32), sram);
  CHECK(single.sram_elements * 2 == half.sram_elements);
  CHECK(single.reduction_m_over_d2 * 2 == half.reduction_m_over_d2);
  CHECK(single.block_kv * 2 == half.block_kv);
}

TEST_CASE("the claims are those of full attention, whatever mask, padding or grouping the shape has") {
  AttentionShape s = square(1000, 64);
  s.num_heads = s.num_kv_heads = 4;
  const PaperClaims plain = claims_of(s, 51200);
  s.mask = Mask::causal();
  s.num_kv_heads = 2;
  s.kv_lengths = {500};
  const PaperClaims masked = claims_of(s, 51200);
  CHECK(masked.algorithm1_bytes == plain.algorithm1_bytes);
  CHECK(masked.naive_bytes == plain.naive_bytes);
  CHECK(masked.standard_elements == plain.standard_elements);
}
