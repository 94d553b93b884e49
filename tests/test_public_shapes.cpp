// What users of attention kernels and roofline tools ran into, as public reports have it: the numbers of the report,
// and what holds beyond them. Here: masks, ragged and strange sizes, numerics.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/run_options.hpp"
#include "model/online_softmax.hpp"
#include "public_cases.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

// Masks

TEST_CASE("2 queries over 5 keys, causal: 9 pairs aligned bottom-right, 3 top-left, and the FLOPs differ as much") {
  // Dao-AILab/flash-attention#517, #951, #402, #351, #282
  const AttentionShape bottom_right = head(2, 5, 64, Mask::causal(Alignment::bottom_right)),
                       top_left = head(2, 5, 64, Mask::causal(Alignment::top_left));
  CHECK(pairs(bottom_right) == 4 + 5);
  CHECK(pairs(top_left) == 1 + 2);
  CHECK(matmul("flash_v2", bottom_right) == Count(3) * matmul("flash_v2", top_left));
  for (std::int64_t nq = 1; nq < 40; ++nq) {
    for (std::int64_t nk = nq; nk < 40; ++nk) {
      const std::int64_t apart =
          pairs(head(nq, nk, 8, Mask::causal())) - pairs(head(nq, nk, 8, Mask::causal(Alignment::top_left)));
      REQUIRE(apart == nq * (nk - nq));  // none where the lengths are equal
    }
  }
}

TEST_CASE("5 queries over 2 keys, causal: the first 3 see nothing, give O = 0 and LSE = -inf, and are still written") {
  // Dao-AILab/flash-attention#1778
  const AttentionShape s = head(5, 2, 8, Mask::causal());
  CHECK(pairs(s) == 0 + 0 + 0 + 1 + 2);
  CHECK(matmul("flash_v2", s).value() == 4 * 8 * 3);
  CHECK(bytes_of("flash_v2", s)[Tensor::Q].read.value() == 5 * 8 * 2);
  CHECK(bytes_of("flash_v2", s)[Tensor::O].write.value() == 5 * 8 * 2);
  CHECK(warns(model_of(s), "the first 3 queries see no key"));
  for (const std::string_view name : kForward) {
    const AttentionResult r = on_cpu(name, s, tiles(2, 2));
    CAPTURE(name);
    for (std::size_t row = 0; row < 5; ++row) {
      CHECK((r.lse[row] == -std::numeric_limits<float>::infinity()) == (row < 3));
      for (std::size_t c = 0; c < 8; ++c) CHECK((r.o[row * 8 + c] == 0) == (row < 3));
    }
  }
}

TEST_CASE(
    "4 queries over 10 keys, d = 8 and d_v = 16, causal: 34 pairs and 1632 FLOP, with no half square in place of the "
    "triangle") {
  // facebookresearch/xformers#1402, #1033; vllm-project/vllm#34150
  AttentionShape s = head(4, 10, 8, Mask::causal());
  s.head_dim_v = 16;
  CHECK(pairs(s) == 7 + 8 + 9 + 10);
  for (const std::string_view name : kForward) CHECK(matmul(name, s).value() == 2 * 34 * (8 + 16));
  for (const std::int64_t context : {1, 10, 1000, 100'000}) {
    for (const std::int64_t n : {1, 4, 512}) {
      if (n <= context) CHECK(pairs(head(n, context, 8, Mask::causal())) == n * context - n * (n - 1) / 2);
    }
    CHECK(pairs(head(1, context, 8, Mask::causal())) == context);  // in decode a causal mask hides nothing
  }
}

TEST_CASE(
    "a model's window of 4 counts the query itself: 3 keys before it, 26 pairs of 8 tokens; 4 before it would be 30") {
  // huggingface/transformers#39408; zml/zml#763; ml-explore/mlx#3552
  const auto windowed = [](std::int64_t left, std::int64_t n) {
    return pairs(head(n, n, 8, Mask{left, 0, Alignment::bottom_right}));
  };
  CHECK(windowed(3, 8) == 1 + 2 + 3 + 4 * 5);
  CHECK(windowed(4, 8) == 1 + 2 + 3 + 4 + 5 * 4);
  for (const std::int64_t w : {1, 2, 7, 100}) {
    for (const std::int64_t n : {100, 1000}) CHECK(windowed(w - 1, n) == w * n - w * (w - 1) / 2);
  }
}

TEST_CASE("-1 is the only negative window, and stands for no limit") {
  // thu-nics/DiTFastAttn#7
  const auto request = [](const char* window) {
    RunOptions o;
    o.seqlen = 100;
    o.window = window;
    return to_request(o);
  };
  CHECK(live_pairs(request("-1,0").shape).value() == 100 * 101 / 2);
  CHECK(live_pairs(request("-1,-1").shape).value() == 100 * 100);
  for (const char* window : {"-2", "-2,0", "0,-5", "-100,-1"}) {
    CAPTURE(window);
    CHECK(has(complaint([&] { (void)request(window); }), "--window"));
  }
}

TEST_CASE("a batch entry of padding only gives O = 0 and LSE = -inf, without NaN, and costs no FLOPs and no keys") {
  // pytorch/pytorch#103749, #103963, #109517; Dao-AILab/flash-attention#2562
  AttentionShape s = shape(2, 1, 1, 6, 6, 8);
  s.kv_lengths = {5, 0};
  CHECK(pairs(s) == 6 * 5);
  CHECK(bytes_of("flash_v2", s)[Tensor::K].read.value() == 5 * 8 * 2);
  for (const std::string_view name : kForward) {
    const AttentionResult r = on_cpu(name, s, tiles(4, 4));
    for (std::size_t i = 0; i < r.o.size(); ++i)
      CHECK((i < r.o.size() / 2 ? std::isfinite(r.o[i]) && r.o[i] != 0 : r.o[i] == 0));
    CHECK(r.lse.back() == -std::numeric_limits<float>::infinity());
  }
  s = shape(4, 1, 1, 10, 3072, 8);
  s.kv_lengths = {2538, 1742, 840, 3072};
  CHECK(pairs(s) == 10 * (2538 + 1742 + 840 + 3072));
}

// Ragged and strange sizes

TEST_CASE("V = 1 gives O = 1 whatever the number of keys: padding of the last tile has no weight") {
  // flashinfer-ai/flashinfer#5090: 65 keys in tiles of 64, with zeros for the missing 63, would give 65 / 128
  for (const std::int64_t nk : {1, 63, 64, 65, 127, 128, 129}) {
    const AttentionShape s = head(3, nk, 8);
    const std::vector<float> zeros(static_cast<std::size_t>(8 * std::max<std::int64_t>(3, nk)), 0.0F),
        ones(zeros.size(), 1.0F);
    const ArrayInputs inputs(s, std::span(zeros).first(3 * 8), std::span(zeros).first(static_cast<std::size_t>(nk) * 8),
                             std::span(ones).first(static_cast<std::size_t>(nk) * 8));
    for (const std::string_view name : kForward) {
      CAPTURE(nk);
      CAPTURE(name);
      const AttentionResult r = run_cpu(name, s, tiles(64, 64), sample_rows(s, 100, 1, 1), inputs);
      for (const float o : r.o) CHECK(std::abs(o - 1) <= 0x1p-10F);
    }
  }
}

TEST_CASE("one token, an odd head dim and a length that no tile divides are right, in numbers and in bytes") {
  // 66RING/tiny-flash-attention#12; tspeterkim/flash-attention-minimal#2; amorehead/jvp_flash_attention#13
  for (const auto& [n, d] : {std::pair<std::int64_t, std::int64_t>{1, 63}, {31, 63}, {33, 1}, {122, 8}}) {
    const AttentionShape s = head(n, n, d, Mask::causal());
    std::vector<NamedPlan> plans;
    for (const std::string_view name : kForward) plans.push_back({name, tiles(32, 32)});
    for (const Exactness& e : check_exactness(s, plans, sample_rows(s, 1000, 1, 1), 1)) CHECK(e.within_tolerance);
  }
  CHECK(4250 % 32 == 26);
  const Traffic t = bytes_of("flash_v2", head(4250, 4250, 63), tiles(32, 32));
  CHECK(t[Tensor::K].read.value() == (4250 / 32 + 1) * 4250 * 63 * 2);
  CHECK(t[Tensor::Q].read.value() == 4250 * 63 * 2);
}

TEST_CASE("a head dim that released kernels do not take is counted, and said to be none of theirs") {
  // Dao-AILab/flash-attention#28, #67, #277, #801, #1347; facebookincubator/AITemplate#53
  for (const std::int64_t d : {80, 88, 96, 192, 256}) {
    CHECK_FALSE(warns(model_of(head(512, 512, d)), "head dim"));
  }
  CHECK(warns(model_of(head(512, 512, 512)), "above 256"));
  CHECK(warns(model_of(head(512, 512, 63)), "multiples of 8"));
}

TEST_CASE(
    "q 192 and v 128 wide: 640 FLOP a pair, where padding V to 192 makes it 768 and V and O half as large again") {
  // Dao-AILab/flash-attention#753, #914, #980, #1504, #1541
  AttentionShape own = head(1000, 1000, 192), padded = own;
  own.head_dim_v = 128;
  for (const std::string_view name : kForward) {
    CHECK(matmul(name, own).value() == 640 * pairs(own));
    CHECK(matmul(name, padded).value() == 768 * pairs(own));
    for (const Tensor t : {Tensor::V, Tensor::O}) {
      CHECK(2 * bytes_of(name, padded)[t].total().value() == 3 * bytes_of(name, own)[t].total().value());
    }
    CHECK(bytes_of(name, padded)[Tensor::K] == bytes_of(name, own)[Tensor::K]);
  }
}

TEST_CASE("an empty batch or an empty sequence is refused by name") {
  // pytorch/pytorch#133780; Dao-AILab/flash-attention#1159
  CHECK(has(complaint_about(shape(0, 10, 10, 3952, 3952, 64)), "--batch: must be at least 1, got 0"));
  CHECK(has(complaint_about(head(0, 5, 64)), "--seqlen-q: must be at least 1, got 0"));
  CHECK(has(complaint_about(head(5, 0, 64)), "--seqlen-kv: must be at least 1, got 0"));
}

TEST_CASE("heads and sequence length in each other's place are noticed") {
  // Dao-AILab/flash-attention#1812
  CHECK(warns(model_of(shape(1, 71280, 71280, 3, 3, 128)), "71280 heads and only 3 queries"));
  CHECK_FALSE(warns(model_of(shape(1, 3, 3, 71280, 71280, 128)), "swapped"));
  CHECK_FALSE(warns(model_of(shape(1, 32, 32, 1, 4096, 128)), "swapped"));  // decode
}

// Numerics

TEST_CASE("the same input gives the same bits, run after run") {
  // Dao-AILab/flash-attention#414, #988, #384, #429, #2244
  const AttentionShape s = shape(1, 4, 2, 100, 130, 32, Mask::causal());
  for (const std::string_view name : kForward) {
    const AttentionResult first = on_cpu(name, s, tiles(32, 32)), second = on_cpu(name, s, tiles(32, 32));
    CHECK(first.o == second.o);
    CHECK(first.lse == second.lse);
  }
}

TEST_CASE("an error is measured against fp64, and may be twice that of the naive pipeline in the same dtype") {
  // Dao-AILab/flash-attention#410, #37, #16, #1071, #1624
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
    AttentionShape s = head(128, 128, 64);
    s.dtype = dtype;
    const NamedPlan flash{"flash_v2", tiles(64, 64)};
    const Exactness e = check_exactness(s, {&flash, 1}, sample_rows(s, 1000, 1, 1), 1).front();
    CHECK(e.within_tolerance);
    CHECK(e.max_abs_error > 0);
    CHECK(e.tolerance >= 2 * e.naive_max_abs_error);
    // An ulp near 1 is 2^-mantissa bits, and |O| stays below 1 here.
    CHECK(e.tolerance <= 2 * e.naive_max_abs_error + std::exp2(-info(dtype).mantissa_bits));
  }
}

TEST_CASE("a logit of 151.29 is beyond exp's range in fp32 and no trouble, as the maximum is subtracted") {
  // pytorch/executorch#18407; pytorch/pytorch#60939
  CHECK(151.29 > std::log(static_cast<double>(std::numeric_limits<float>::max())));
  const SoftmaxResult r = online_softmax({{{151.29, 150.29}, {0.0}}, {{1.0}, {0.0}, {0.0}}}, Dtype::fp32);
  CHECK(r.o_unnormalised.front() == doctest::Approx(1 / (1 + std::exp(-1.0))));
  CHECK(r.lse == doctest::Approx(151.29 + std::log1p(std::exp(-1.0))));
}

TEST_CASE(
    "q = k = 256 and d = 128 score 741,455, which fp16 cannot store, and every score that overflowed is counted") {
  // NVIDIA/TensorRT-LLM#18044; ultralytics/ultralytics#24990
  CHECK(128.0 * 256 * 256 / std::sqrt(128.0) > info(Dtype::fp16).max);
  const AttentionShape s = head(2, 3, 128);
  const std::vector<float> q(2 * 128, 256.0F), k(3 * 128, 256.0F), v(3 * 128, 1.0F);
  const ArrayInputs inputs(s, q, k, v);
  CHECK(run_cpu("naive", s, {}, sample_rows(s, 10, 1, 1), inputs).nonfinite_scores == 2 * 3);
  CHECK(run_cpu("flash_v2", s, tiles(2, 2), sample_rows(s, 10, 1, 1), inputs).nonfinite_scores == 0);  // S stays fp32
}
