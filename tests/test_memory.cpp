// Which tensors lie in HBM, for how long, and the memory table of the FlashAttention paper.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/memory.hpp"
#include "random_shapes.hpp"

using namespace hbmscope;
using hbmscope::testing::Draw;

namespace {

constexpr std::int64_t kN = 8192, kMiB = std::int64_t{1} << 20;

AttentionShape head(std::int64_t seqlen, std::int64_t head_dim) {
  AttentionShape s;
  s.seqlen_q = s.seqlen_kv = seqlen;
  s.head_dim = s.head_dim_v = head_dim;
  return s;
}

TilePlan tiles() {
  TilePlan p;
  p.block_q = p.block_kv = 128;
  return p;
}

MemoryLedger ledger(std::string_view name, const AttentionShape& s, const TilePlan& p = tiles()) {
  return memory_ledger(algorithm(name), s, p);
}

/// The tensors of a kind, by name, in the order of the table: "S P".
template <class Kind>
std::string names(const MemoryLedger& ledger, Kind is_wanted) {
  std::string all;
  for (const LedgerEntry& entry : ledger.entries) {
    if (is_wanted(entry)) all += (all.empty() ? "" : " ") + std::string(info(entry.tensor).name);
  }
  return all;
}
std::string intermediates(const MemoryLedger& l) {
  return names(l, [](const LedgerEntry& e) { return e.intermediate; });
}
std::string saved(const MemoryLedger& l) {
  return names(l, [](const LedgerEntry& e) { return e.saved_for_backward; });
}

}  // namespace

TEST_CASE("one head at N = 8192 in fp16: naive keeps S and P, 256 MiB; flash_v2 one fp32 number a row, 32 KiB") {
  const MemoryLedger naive = ledger("naive", head(kN, 128)), flash = ledger("flash_v2", head(kN, 128));
  CHECK(intermediates(naive) == "S P");
  CHECK(naive.intermediate_bytes.value() == 2 * kN * kN * 2);
  CHECK(naive.intermediate_bytes.value() == 256 * kMiB);
  CHECK(intermediates(flash) == "LSE");
  CHECK(flash.intermediate_bytes.value() == kN * 4);
  CHECK(flash.intermediate_bytes.value() == 32 * 1024);
}

TEST_CASE("naive peaks in the softmax, where S and P live beside Q, K and V; S is free before O is made") {
  const std::int64_t Nd = kN * 128 * 2, NN = kN * kN * 2;
  const MemoryLedger naive = ledger("naive", head(kN, 128));
  CHECK(naive.peak_stage == "softmax");
  CHECK(naive.peak_bytes.value() == 3 * Nd + 2 * NN);
  const MemoryLedger flash = ledger("flash_v2", head(kN, 128));
  CHECK(flash.peak_stage == "fused");
  CHECK(flash.peak_bytes.value() == 4 * Nd + kN * 4);
}

TEST_CASE("twice the sequence takes four times naive's intermediates and twice those of every flash forward pass") {
  for (const std::string_view name : {"flash_v1", "flash_v2", "split_kv"}) {
    CHECK(ledger(name, head(2 * kN, 64)).intermediate_bytes ==
          Count(2) * ledger(name, head(kN, 64)).intermediate_bytes);
  }
  CHECK(ledger("naive", head(2 * kN, 64)).intermediate_bytes ==
        Count(4) * ledger("naive", head(kN, 64)).intermediate_bytes);
}

TEST_CASE("flash_v1 keeps l and m; as released an fp32 O and one LSE") {
  const std::int64_t Nd = kN * 64 * 2;
  CHECK(intermediates(ledger("flash_v1", head(kN, 64))) == "l m");
  TilePlan released = tiles();
  released.variant = FlashV1Variant::released;
  const MemoryLedger l = ledger("flash_v1", head(kN, 64), released);
  CHECK(intermediates(l) == "LSE Otmp");
  CHECK(l.intermediate_bytes.value() == 2 * Nd + kN * 4);
  // With a single pass over the keys nothing has to wait.
  released.block_kv = kN;
  CHECK(intermediates(ledger("flash_v1", head(kN, 64), released)) == "LSE");
}

TEST_CASE("split_kv keeps an fp32 O and a log-sum-exp for each split") {
  AttentionShape s = head(kN, 128);
  s.seqlen_q = 1;
  s.num_heads = s.num_kv_heads = 16;
  TilePlan p = tiles();
  p.num_kv_splits = 8;
  const MemoryLedger l = ledger("split_kv", s, p);
  CHECK(intermediates(l) == "LSE Oacc LSEacc");
  CHECK(l.intermediate_bytes.value() == 16 * (8 * (128 * 4 + 4) + 4));
  CHECK(l.peak_stage == "combine");
}

TEST_CASE("for its backward pass naive saves P, N^2, and flash O with one number a row") {
  const std::int64_t Nd = kN * 128 * 2, NN = kN * kN * 2;
  const MemoryLedger naive = ledger("naive", head(kN, 128)), flash = ledger("flash_v2", head(kN, 128));
  CHECK(saved(naive) == "Q K V P");
  CHECK(naive.saved_for_backward_bytes.value() == 3 * Nd + NN);
  CHECK(saved(flash) == "Q K V O LSE");
  CHECK(flash.saved_for_backward_bytes.value() == 4 * Nd + kN * 4);
  CHECK(saved(ledger("flash_v2_bwd", head(kN, 128))).empty());
}

TEST_CASE("the backward passes: naive keeps dP and dS, flash_v2 D and an fp32 dQ, and P or O was given") {
  const std::int64_t Nd = kN * 128 * 2, NN = kN * kN * 2;
  const MemoryLedger naive = ledger("naive_bwd", head(kN, 128)), flash = ledger("flash_v2_bwd", head(kN, 128));
  CHECK(intermediates(naive) == "dP dS");
  CHECK(naive.peak_stage == "ds");
  CHECK(naive.peak_bytes.value() == 3 * NN + 4 * Nd + Nd);  // P, dP, dS; Q, K, V, dO; dV
  CHECK(intermediates(flash) == "D dQacc");
  CHECK(flash.intermediate_bytes.value() == kN * 4 + 2 * Nd);
}

TEST_CASE("dropout adds P after dropout and one byte a probability, fp32 scores double S, repeat_kv copies K and V") {
  const std::int64_t NN = kN * kN * 2, Nd = kN * 64 * 2;
  TilePlan p = tiles();
  p.dropout = true;
  CHECK(intermediates(ledger("naive", head(kN, 64), p)) == "S P Pd dmask");
  CHECK(ledger("naive", head(kN, 64), p).intermediate_bytes.value() == 3 * NN + kN * kN);
  p = tiles();
  p.fp32_scores = true;
  CHECK(ledger("naive", head(kN, 64), p).intermediate_bytes.value() == 3 * NN);
  p = tiles();
  p.repeat_kv = true;
  AttentionShape s = head(kN, 64);
  s.num_heads = 8;
  s.num_kv_heads = 2;
  CHECK(ledger("naive", s, p).intermediate_bytes.value() == 8 * (2 * NN + 2 * Nd));
}

TEST_CASE("with GQA, K and V and their gradients take a kv head's room each, sums over the group a query head's") {
  AttentionShape s = head(1024, 64);
  s.num_heads = 8;
  s.num_kv_heads = 2;
  CHECK(tensor_bytes(Tensor::K, s, {}).value() == 2 * 1024 * 64 * 2);
  CHECK(tensor_bytes(Tensor::dK, s, {}).value() == 2 * 1024 * 64 * 2);
  CHECK(tensor_bytes(Tensor::dKx, s, {}).value() == 8 * 1024 * 64 * 2);
  CHECK(tensor_bytes(Tensor::Q, s, {}).value() == 8 * 1024 * 64 * 2);
}

TEST_CASE("a peak is at least the inputs and at most everything, and no entry ends before it begins") {
  Draw draw(3);
  for (int i = 0; i < 500; ++i) {
    const AttentionShape s = hbmscope::testing::random_shape(draw, 50);
    const TilePlan p = hbmscope::testing::random_plan(draw, 16);
    for (const Algorithm& a : algorithms()) {
      const MemoryLedger l = memory_ledger(a, s, p);
      Bytes all, inputs, intermediate;
      for (const LedgerEntry& entry : l.entries) {
        REQUIRE(entry.first_stage <= entry.last_stage);
        all += entry.bytes;
        if (entry.intermediate) intermediate += entry.bytes;
        if (info(entry.tensor).role == TensorRole::input) inputs += entry.bytes;
      }
      REQUIRE(l.intermediate_bytes == intermediate);
      REQUIRE(l.peak_bytes >= inputs);
      REQUIRE(l.peak_bytes <= all);
    }
  }
}

TEST_CASE(
    "the FlashAttention paper's Table 21 (batch 16, 8 heads, d = 64, forward and backward) is in MiB, all 16 cells") {
  struct Row {
    std::int64_t seqlen, standard, flash;  ///< as printed; 0: out of memory
  };
  const std::vector<Row> table{{128, 36, 22},     {256, 104, 44},     {512, 336, 104}, {1024, 1184, 209},
                               {2048, 4416, 418}, {4096, 17024, 836}, {8192, 0, 1672}, {16384, 0, 3344},
                               {32768, 0, 6688},  {65536, 0, 13376}};
  for (const Row& row : table) {
    AttentionShape s = head(row.seqlen, 64);
    s.batch = 16;
    s.num_heads = s.num_kv_heads = 8;
    const MemoryFit fit = paper_memory_fit(s);
    CAPTURE(row.seqlen);
    CHECK(fit.flash.value() / kMiB == row.flash);
    if (row.standard != 0) {
      CHECK(fit.standard.value() == row.standard * kMiB);
    } else {
      CHECK(fit.standard.value() > 40960 * kMiB);  // more than the A100 of the table has
    }
  }
}

TEST_CASE("the fit is 4 N^2 + 10 N d for standard attention, 11 or 13 N d and two fp32 rows for FlashAttention") {
  for (const std::int64_t N : {255, 256, 257, 4000}) {
    const MemoryFit fit = paper_memory_fit(head(N, 96));
    CHECK(fit.standard.value() == (4 * N * N + 10 * N * 96) * 2);
    // Beyond one block of 256 keys an fp32 O waits between passes.
    CHECK(fit.flash.value() == (N <= 256 ? 11 : 13) * N * 96 * 2 + 2 * N * 4);
  }
}

TEST_CASE("10 times less memory at 2K and 20 times at 4K, as the paper's release says") {
  const auto ratio = [](std::int64_t N) {
    const MemoryFit fit = paper_memory_fit(head(N, 64));
    return fit.standard.as_double() / fit.flash.as_double();
  };
  CHECK(ratio(2048) == doctest::Approx(4416.0 / 418).epsilon(0.001));
  CHECK(ratio(4096) == doctest::Approx(17024.0 / 836).epsilon(0.001));
}
