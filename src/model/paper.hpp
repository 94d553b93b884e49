#pragma once
#include <cstdint>

#include "model/attention_shape.hpp"

namespace hbmscope {

/// What the papers claim about I/O, in elements of the shape's dtype and summed over batch and query heads, beside what
/// their own constants make of it. The papers have one N. Where queries and keys differ, N^2 stands for seqlen_q *
/// seqlen_kv, and N d for (seqlen_q + seqlen_kv) * head_dim: rows of Q and O, and rows of K and V. M is the on-chip
/// memory. These are orders of growth: only `algorithm1_elements` is a count.
struct PaperClaims {
  Bytes sram_bytes;              ///< M in bytes
  double sram_elements = 0;      ///< M in elements: the unit of the theorems
  double standard_elements = 0;  ///< N d + N^2 (FlashAttention, Theorem 2); Nq Nk + (Nq + Nk) d where they differ
  double flash_elements = 0;     ///< N^2 d^2 / M (FlashAttention, Theorem 2); holds for d <= M <= N d
  double lower_bound_elements =
      0;  ///< min(N^2 d / sqrt(M), N^2 d^2 / M) (Saha and Ye, arXiv 2402.07443, Theorem 3.1); its constant is unknown
  double reduction_m_over_d2 = 0;       ///< M / d^2: N^2 over N^2 d^2 / M
  double reduction_with_constants = 0;  ///< M / (3 d^2): 4 N^2 over Algorithm 1's 12 N^2 d^2 / M
  double reduction_n_over_d = 0;        ///< N / d: four N^2 passes over Q, K, V and O once each
  std::int64_t block_q = 0;             ///< Algorithm 1's B_r = min(ceil(M / 4d), d)
  std::int64_t block_kv = 0;            ///< Algorithm 1's B_c = ceil(M / 4d)
  /// Algorithm 1 with those blocks, counted without a mask: with each statistic one element and without its
  /// initialisation.
  Count algorithm1_elements;
  Count naive_elements;    ///< 4 N^2 + 4 N d
  Bytes algorithm1_bytes;  ///< without initialisation, statistics of 4 bytes
  Bytes algorithm1_bytes_with_init;
  Bytes naive_bytes;
};

PaperClaims paper_claims(const AttentionShape& shape, Bytes sram);

/// Algorithm 1's block sizes for M elements of on-chip memory.
struct Algorithm1Blocks {
  std::int64_t block_q, block_kv;
};
Algorithm1Blocks algorithm1_blocks(std::int64_t sram_elements, std::int64_t head_dim);

}  // namespace hbmscope
