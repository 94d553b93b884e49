// What users of attention kernels and roofline tools ran into, as public reports have it: the numbers of the report,
// and what holds beyond them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <locale>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/run.hpp"
#include "cli/run_options.hpp"
#include "core/parse.hpp"
#include "model/online_softmax.hpp"
#include "random_shapes.hpp"
#include "report/format.hpp"
#include "report/run_json.hpp"
#include "scenario/gpu_file.hpp"

using namespace hbmscope;
using hbmscope::testing::Draw;

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::string_view kForward[] = {"naive", "flash_v1", "flash_v2", "split_kv"};

AttentionShape shape(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t seqlen_q,
                     std::int64_t seqlen_kv, std::int64_t head_dim, const Mask& mask = Mask::none()) {
  AttentionShape s;
  s.batch = batch;
  s.num_heads = heads;
  s.num_kv_heads = kv_heads;
  s.seqlen_q = seqlen_q;
  s.seqlen_kv = seqlen_kv;
  s.head_dim = s.head_dim_v = head_dim;
  s.mask = mask;
  return s;
}
AttentionShape head(std::int64_t seqlen_q, std::int64_t seqlen_kv, std::int64_t head_dim,
                    const Mask& mask = Mask::none()) {
  return shape(1, 1, 1, seqlen_q, seqlen_kv, head_dim, mask);
}

TilePlan tiles(std::int64_t block_q, std::int64_t block_kv) {
  TilePlan p;
  p.block_q = block_q;
  p.block_kv = block_kv;
  return p;
}

Traffic bytes_of(std::string_view name, const AttentionShape& s, const TilePlan& p = tiles(128, 128)) {
  return total(algorithm(name).closed_form(s, p));
}
Flop matmul(std::string_view name, const AttentionShape& s) {
  return algorithm(name).flops(s, tiles(128, 128)).matmul;
}
std::int64_t pairs(const AttentionShape& s) {
  return live_pairs(s).value();
}
Bytes kv_bytes(const AttentionShape& s) {
  return tensor_bytes(Tensor::K, s, {}) + tensor_bytes(Tensor::V, s, {});
}

FlopPerSecond peak(std::string_view gpu, Dtype dtype = Dtype::bf16) {
  return *embedded_gpu(gpu).peak[static_cast<std::size_t>(dtype)];
}
BytesPerSecond bandwidth(std::string_view gpu) {
  return embedded_gpu(gpu).hbm_bandwidth;
}
constexpr double tera(FlopPerSecond rate) {
  return rate.value / 1e12;
}

RunResult model_of(const AttentionShape& s, std::string_view gpu = "H100", Engine engine = Engine::model,
                   bool l2_warm = false) {
  RunRequest r;
  r.shape = s;
  r.gpu = embedded_gpu(gpu);
  r.engine = engine;
  r.l2_warm = l2_warm;
  return run(r);
}

bool warns(const RunResult& r, std::string_view part) {
  return std::any_of(r.warnings.begin(), r.warnings.end(),
                     [&](const std::string& w) { return w.find(part) != std::string::npos; });
}

/// "message | hint" of the Error that `work` ends in; empty if there is none.
template <class Work>
std::string complaint(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what() + (" | " + error.hint());
  }
  return {};
}
std::string complaint_about(const AttentionShape& s) {
  return complaint([&] { validate(s, Speaker::option); });
}
bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

AttentionResult on_cpu(std::string_view name, const AttentionShape& s, const TilePlan& p) {
  return run_cpu(name, s, p, sample_rows(s, 1 << 20, 1 << 10, 1), 1);
}

}  // namespace

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

// GQA

TEST_CASE("kv heads must divide query heads, and both numbers are named") {
  // fla-org/flash-linear-attention#1029, #1032; tenstorrent/polaris#412; Dao-AILab/flash-attention#397
  for (const auto& [h, hkv] : {std::pair<std::int64_t, std::int64_t>{33, 2}, {3, 2}, {2, 4}}) {
    const std::string said = complaint_about(shape(1, h, hkv, 8, 8, 64));
    CAPTURE(said);
    CHECK(has(said, "--kv-heads"));
    CHECK(has(said, std::to_string(h) + " query heads"));
    CHECK(has(said, std::to_string(hkv) + " kv heads"));
  }
  CHECK(has(complaint_about(shape(1, 8, 0, 8, 8, 64)), "--kv-heads: must be at least 1, got 0"));
  CHECK(complaint_about(shape(1, 33, 11, 8, 8, 64)).empty());
}

TEST_CASE("K and V of a decode step count kv heads, not query heads: 32 MiB a layer at 32 over 8 heads, not 128 MiB") {
  // hahnyuan/LLM-Viewer#12
  const AttentionShape gqa = shape(1, 32, 8, 1, 8192, 128), mha = shape(1, 32, 32, 1, 8192, 128);
  CHECK(kv_bytes(gqa).value() == 2 * 8 * 8192 * 128 * 2);
  CHECK(kv_bytes(gqa).value() == 33'554'432);
  CHECK(kv_bytes(mha).value() == 134'217'728);
  const Traffic t = bytes_of("split_kv", gqa);
  CHECK(t[Tensor::K].read + t[Tensor::V].read == kv_bytes(gqa));
}

TEST_CASE("a block a (token, head) requests K and V 24 times over: 786 MB where 33 MB are compulsory") {
  // timtoole02/Camelid#444: 8 tokens, 8000 keys, 24 over 8 heads
  const AttentionShape s = shape(1, 24, 8, 8, 8000, 128);
  const auto requested = [&](const TilePlan& p) {
    const Traffic t = bytes_of("flash_v2", s, p);
    return t[Tensor::K].read + t[Tensor::V].read;
  };
  CHECK(kv_bytes(s).value() == 8000 * 8 * 128 * 2 * 2);
  CHECK(requested(tiles(1, 128)) == Count(8 * 3) * kv_bytes(s));
  TilePlan packed = tiles(24, 128);  // 8 tokens of 3 heads in one tile
  packed.pack_gqa = true;
  CHECK(requested(packed) == kv_bytes(s));
}

// FLOPs

TEST_CASE("the FLOP count is that of the shape: no algorithm, tile or dtype makes it another, and never 0") {
  // pytorch/pytorch#195460; Dao-AILab/flash-attention#594
  CHECK(matmul("naive", shape(1, 12, 12, 64, 64, 64)).value() == 4 * 12 * 64 * 64 * 64);
  Draw draw(23);
  for (int i = 0; i < 300; ++i) {
    AttentionShape s = hbmscope::testing::random_shape(draw, 60);
    const std::int64_t expected = 2 * (s.head_dim + s.head_dim_v) * pairs(s);
    for (const std::string_view name : kForward) {
      const FlopCount count = algorithm(name).flops(s, hbmscope::testing::random_plan(draw, 30));
      REQUIRE(count.matmul.value() == expected);
      REQUIRE(count.exp.value() == pairs(s));
    }
  }
}

TEST_CASE(
    "a rate counted without the mask of a causal run is nearly twice the true one: 189 TFLOP/s would be 121 % of an "
    "A100") {
  // pytorch/torchtitan#341; NVIDIA/Megatron-LM#831; modular/modular#5557
  const AttentionShape causal = head(16384, 16384, 128, Mask::causal()), full = head(16384, 16384, 128);
  const Seconds time = matmul("flash_v2", causal) / FlopPerSecond{189e12};
  const FlopPerSecond wrong = matmul("flash_v2", full) / time;
  CHECK(wrong / peak("A100") == doctest::Approx(189.0 * 2 / 312).epsilon(0.001));
  CHECK(wrong / peak("A100") > 1.2);
  CHECK(wrong.value / 189e12 == doctest::Approx(2.0 * 16384 / 16385));
}

TEST_CASE("the backward pass is 2.5 times the forward one where S is computed again, 2 times where P is saved") {
  // Dao-AILab/flash-attention#1525: not the 2 of a layer of weights
  for (const AttentionShape& s : {head(500, 500, 64), shape(2, 8, 2, 100, 300, 128, Mask::causal())}) {
    const std::int64_t forward = matmul("flash_v2", s).value();
    CHECK(2 * matmul("flash_v2_bwd", s).value() == 5 * forward);
    CHECK(matmul("naive_bwd", s).value() == 2 * forward);
  }
}

TEST_CASE("pairs of a long causal sequence are a formula, with no N x N array: S alone would take 2.2 TB at 2^20") {
  // NVIDIA/cudnn-frontend#347
  CHECK(pairs(head(32768, 32768, 128, Mask::causal())) == 536'887'296);
  CHECK(pairs(head(1 << 20, 1 << 20, 128, Mask::causal())) == 549'756'338'176);
  CHECK(tensor_bytes(Tensor::S, head(1 << 20, 1 << 20, 128), {}).value() == std::int64_t{2'199'023'255'552});
}

// Bytes and what they cost

TEST_CASE(
    "Algorithm 1 has T_c passes, hence one M below the line, and standard attention none: 1,335,296 elements against "
    "4,456,448") {
  // Dao-AILab/flash-attention#1260: N = 1024, d = 64, M = 51,200
  const AttentionShape s = head(1024, 1024, 64);
  const PaperClaims c = paper_claims(s, Bytes(51200 * 2));
  CHECK(c.block_kv == 200);
  CHECK(c.algorithm1_elements.value() == 2 * 1024 * 64 + 6 * (3 * 1024 * 64 + 4 * 1024));
  CHECK(c.naive_elements.value() == 4 * 1024 * 1024 + 4 * 1024 * 64);
  CHECK(c.naive_elements.as_double() / c.algorithm1_elements.as_double() == doctest::Approx(3.34).epsilon(0.001));
  const Traffic v2 = bytes_of("flash_v2", s);
  CHECK((v2.total() - v2[Tensor::LSE].total()).value() == 2 * (2 * 1024 * 64 + 8 * 2 * 1024 * 64));
  CHECK(paper_claims(s, Bytes(2 * 51200 * 2)).flash_elements == c.flash_elements / 2);  // M, not M^2
  CHECK(paper_claims(s, Bytes(2 * 51200 * 2)).naive_elements == c.naive_elements);
}

TEST_CASE("O of a fused kernel is linear in N: 32 MiB at 32 heads and N = 4096, not the 2 GiB of an N x N shape") {
  // hahnyuan/LLM-Viewer, model_analyzer.py at 472f71f
  const auto stored = [](std::int64_t n) {
    return bytes_of("flash_v2", shape(1, 32, 32, n, n, 128))[Tensor::O].write.value();
  };
  CHECK(stored(4096) == 4096 * 128 * 32 * 2);
  for (const std::int64_t n : {1, 100, 4096, 100'000}) CHECK(stored(2 * n) == 2 * stored(n));
}

TEST_CASE("a decode step moves the whole KV cache: 162 GB/s, not the 0.25 of the new tokens alone, at 10 FLOP/B") {
  // intel/sycl-tla#778: batch 16, 80 over 8 heads, 10,240 cached keys and a new one, 4.1408 ms, O in fp32
  AttentionShape s = shape(16, 80, 8, 1, 10240 + 1, 128);
  s.dtype = Dtype::bf16;
  const Traffic t = compulsory_traffic(s, Pass::decode);
  CHECK(t[Tensor::Q].read.value() == 327'680);
  CHECK((t[Tensor::K].read + t[Tensor::V].read).value() == 671'154'176);
  const Bytes moved = t.total() + t[Tensor::O].write;  // once more for fp32
  CHECK(moved.value() == 672'137'216);
  CHECK((moved / Seconds{4.1408e-3}).value == doctest::Approx(162.3e9).epsilon(0.001));
  CHECK((matmul("flash_v2", s) / Seconds{4.1408e-3}).value == doctest::Approx(1.621e12).epsilon(0.001));
  CHECK((matmul("flash_v2", s) / moved).value == doctest::Approx(9.99).epsilon(0.001));
}

TEST_CASE(
    "long decode is the KV cache at the bandwidth: 9.653 ms over 524,288 keys are 890 of an RTX 3090's 936 GB/s") {
  // flagos-ai/FlagAttention#17: batch 2, 32 heads, d = 64
  const auto cache = [](std::int64_t keys) { return kv_bytes(shape(2, 32, 32, 1, keys, 64)); };
  for (const std::int64_t keys : {1, 512, 65536}) CHECK(cache(keys).value() == 16384 * keys);
  const BytesPerSecond rate = cache(524288) / Seconds{9.653e-3};
  CHECK(rate.value == doctest::Approx(890e9).epsilon(0.001));
  CHECK(rate / BytesPerSecond{936e9} == doctest::Approx(0.95).epsilon(0.001));
  // Q and O are nothing beside it, and any number of splits adds little.
  TilePlan p = tiles(64, 128);
  p.num_kv_splits = 8;
  CHECK(bytes_of("split_kv", shape(2, 32, 32, 1, 524288, 64), p).total().as_double() <
        1.001 * cache(524288).as_double());
}

TEST_CASE("decode without GQA does about one FLOP a byte in fp16, with G query heads a kv head about G") {
  // baseten.co, A guide to LLM inference and performance, November 2023
  for (const std::int64_t G : {1, 4, 8}) {
    const AttentionShape s = shape(1, 32, 32 / G, 1, 65536, 128);
    CHECK((matmul("split_kv", s) / compulsory_bytes(s, Pass::decode)).value ==
          doctest::Approx(static_cast<double>(G)).epsilon(0.001));
  }
  const AttentionShape prefill = head(4096, 4096, 128);
  const FlopPerByte naive = matmul("naive", prefill) / bytes_of("naive", prefill, {}).total();
  CHECK(naive.value == doctest::Approx(62).epsilon(0.005));
  CHECK(naive < peak("A100") / bandwidth("A100"));
  CHECK((Bytes(14'000'000'000) / bandwidth("A100")).value ==
        doctest::Approx(6.87e-3).epsilon(0.001));  // all weights of a 7B model, once
  CHECK(bandwidth("A100") / bandwidth("A10") == doctest::Approx(3.4).epsilon(0.001));
}

TEST_CASE("where S and P fit in the L2 no HBM traffic is saved, and a short sequence is told so") {
  // antimora/burn-flex#17; Dao-AILab/flash-attention#591, #2317; tspeterkim/flash-attention-minimal#11
  const AttentionShape brief = shape(1, 12, 12, 256, 256, 64);
  CHECK((tensor_bytes(Tensor::S, brief, {}) + tensor_bytes(Tensor::P, brief, {})).value() == 2 * 12 * 256 * 256 * 2);
  for (const std::string_view gpu : {"A100", "H100", "H200"}) {
    CHECK(warns(model_of(brief, gpu), "L2-resident"));
    CHECK_FALSE(warns(model_of(shape(1, 12, 12, 8192, 8192, 64), gpu), "L2-resident"));
  }
}

TEST_CASE("a warm L2 hides HBM reads of a working set that fits: 6.3 MB of Q, K, V and O") {
  // RRZE-HPC/gpu-benches#6; NVIDIA/TileGym#118; NVIDIA/nvbench#270
  const AttentionShape s = shape(1, 12, 12, 1024, 1024, 64);
  CHECK(compulsory_bytes(s, Pass::forward).value() == 12 * 1024 * 64 * 2 * 4);
  const RunResult cold = model_of(s, "H100", Engine::sim), warm = model_of(s, "H100", Engine::sim, true);
  for (const std::string_view name : {"naive", "flash_v1", "flash_v2"}) {
    const Traffic &from_cold = *cold.find(name)->at(Boundary::l2_hbm)->traffic,
                  &from_warm = *warm.find(name)->at(Boundary::l2_hbm)->traffic;
    CHECK(from_warm.total() <= from_cold.total());
    CHECK(from_cold.total() >= compulsory_bytes(s, Pass::forward));
  }
  const Traffic& flash = *warm.find("flash_v2")->at(Boundary::l2_hbm)->traffic;
  CHECK(flash.sum().read < compulsory_traffic(s, Pass::forward).sum().read);
  CHECK(warns(warm, "warm L2"));
}

TEST_CASE("fp32 doubles the bytes of Q, K, V, O, S and P, not those of the statistics, which are fp32 anyway") {
  // Dao-AILab/flash-attention#622, #152; unslothai/unsloth#827
  AttentionShape half = shape(1, 4, 2, 300, 500, 64), single = half;
  single.dtype = Dtype::fp32;
  for (const Algorithm& a : algorithms()) {
    const Traffic narrow_bytes = bytes_of(a.name, half), wide = bytes_of(a.name, single);
    for (const TensorInfo& t : kTensors) {
      const bool always_fp32 = t.role == TensorRole::statistic || t.tensor == Tensor::l || t.tensor == Tensor::m ||
                               t.tensor == Tensor::dQacc;
      CAPTURE(a.name);
      CAPTURE(t.name);
      CHECK(wide[t.tensor].total() == Count(always_fp32 ? 1 : 2) * narrow_bytes[t.tensor].total());
    }
  }
  RunOptions o;
  o.dtype = "fp64";
  const std::string said = complaint([&] { (void)to_request(o); });
  CHECK(has(said, "--dtype"));
  CHECK(has(said, "fp32"));
}

TEST_CASE("a tile of 128 KiB is refused on an RTX 4090 with both numbers; left open, a smaller one is taken") {
  // Dao-AILab/flash-attention#2750: d = 256, causal
  const AttentionShape s = head(4096, 4096, 256, Mask::causal());
  const Bytes smem = embedded_gpu("RTX 4090").smem_per_block_bytes;
  const Algorithm& flash = algorithm("flash_v2");
  CHECK(smem_tally(flash, s, tiles(128, 64)).total.value() == 65536 + 32768 + 32768);
  const std::string said = complaint([&] { (void)choose_plan(flash, s, tiles(128, 64), smem); });
  CHECK(has(said, "131072"));
  CHECK(has(said, "101376"));
  CHECK(smem_tally(flash, s, choose_plan(flash, s, {}, smem)).total <= smem);
}

TEST_CASE("heads alone leave most of a GPU idle in decode; splits of the keys fill it") {
  // Dao-AILab/flash-attention#609; paiml/aprender#3725; Wenyueh/MinivLLM#93
  const auto splits = [](std::int64_t heads, std::int64_t sms) {
    return choose_kv_splits(shape(1, heads, heads, 1, 65536, 128), tiles(64, 128), sms);
  };
  CHECK(splits(12, embedded_gpu("A100").num_sms) * 12 == 108);
  CHECK(splits(12, embedded_gpu("H100").num_sms) * 12 == 132);
  CHECK(splits(16, embedded_gpu("RTX 4090").num_sms) * 16 == 128);  // without splits 12.5 % of its SMs work
  for (std::int64_t heads = 1; heads <= 132; ++heads) {
    const double waves = static_cast<double>(heads * splits(heads, 132)) / 132;
    CAPTURE(heads);
    CHECK(waves / std::ceil(waves) >= 0.8);
  }
}

// Amdahl

TEST_CASE(
    "a kernel twice, three or four times as fast makes a step 1.1 times as fast where attention had 18, 14 or 12 % of "
    "it") {
  // Dao-AILab/flash-attention#607, #81; young-geng/EasyLM#81; turboderp-org/exllamav2#199
  for (const auto& [speedup, share] : {std::pair{2.0, 0.182}, {3.0, 0.136}, {4.0, 0.121}}) {
    CHECK(amdahl((1 - 1 / 1.1) / (1 - 1 / speedup), speedup).end_to_end_speedup == doctest::Approx(1.1));
    CHECK(amdahl(share, speedup).end_to_end_speedup == doctest::Approx(1.1).epsilon(0.001));
  }
  // One query has one row of scores, so decode saves no N^2 memory.
  CHECK(memory_ledger(algorithm("naive"), head(1, 8192, 128), {}).intermediate_bytes.value() == 2 * 8192 * 2);
}

TEST_CASE(
    "30 % less kernel time and a kernel 1.3 times as fast are not the same: 1.111 and 1.083 where attention has a "
    "third") {
  // vllm-project/vllm#3462
  CHECK(amdahl(1.0 / 3, speedup_of_time_saved(0.3)).end_to_end_speedup == doctest::Approx(1 / (1 - 0.1)));
  CHECK(amdahl(1.0 / 3, 1.3).end_to_end_speedup == doctest::Approx(1.0833).epsilon(0.0001));
  RunOptions o;
  o.amdahl = {1.0 / 3, 1.3, 0.3};
  CHECK(has(complaint([&] { (void)to_request(o); }), "--attention-time-saved"));
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

// GPUs and units

TEST_CASE("peaks are dense, and no one's half or double") {
  // stas00/ml-engineering#100; Lightning-AI/pytorch-lightning#21743; allenai/OLMo-core#614, #817;
  // karpathy/autoresearch#5, #270; modal-labs/modal-examples#992
  CHECK(tera(peak("H100 SXM")) == doctest::Approx(989.5).epsilon(0.001));
  CHECK(tera(peak("H100 PCIe")) == 756.5);
  CHECK(tera(peak("H200")) == 989.5);
  CHECK(tera(peak("A100")) == 312);
  CHECK(tera(peak("B200")) == 2250);
  CHECK(tera(peak("MI300X")) == 1307.4);
  CHECK(tera(peak("RTX 4090")) == 165.2);
  CHECK(tera(peak("H100 SXM", Dtype::fp8)) == doctest::Approx(3958.0 / 2).epsilon(0.001));
  CHECK(text::flop_rate(peak("H200", Dtype::fp8)) == "1.98 PFLOP/s");
  CHECK(480e12 / peak("H100 SXM").value == doctest::Approx(0.485).epsilon(0.001));
  CHECK(275.6e12 / peak("B200").value == doctest::Approx(0.1225).epsilon(0.001));
  CHECK(225e12 / peak("A100").value == doctest::Approx(0.7212).epsilon(0.001));
  for (const GpuSpec& gpu : embedded_gpus_parsed()) {
    // Of one chip, fp8 is twice fp16 and bf16 no different; a sparse number in one place would show as 4, 2 or a half.
    const auto rate = [&](Dtype t) { return gpu.peak[static_cast<std::size_t>(t)]; };
    CAPTURE(gpu.name);
    if (rate(Dtype::bf16)) CHECK(*rate(Dtype::bf16) == *rate(Dtype::fp16));
    if (rate(Dtype::fp8)) CHECK(*rate(Dtype::fp8) / *rate(Dtype::fp16) == doctest::Approx(2).epsilon(0.02));
  }
}

TEST_CASE("a GPU that nobody listed is refused, not replaced by another, and a bandwidth is never guessed") {
  // PrimeIntellect-ai/prime-rl#1722, #3168; pytorch/torchtitan#4779; Raskoll2/LLMcalc#4
  for (const char* unknown : {"B300", "MI350X", "H100 NVL", "RTX 3090"})
    CHECK_THROWS_AS((void)find_gpu(unknown), Error);
  const std::string said = complaint([] {
    (void)parse_gpu(R"({"name": "Two 24 GB cards", "num_sms": 82, "l2_bytes": 6291456,
                        "smem_per_block_bytes": 101376, "smem_per_sm_bytes": 102400, "registers_per_sm_bytes": 262144,
                        "hbm_bytes": 48e9, "peak_flop_per_s": {"fp16": 71e12}})",
                    "two.json");
  });
  CHECK(has(said, "/hbm_bandwidth_bytes_per_s: is missing"));
}

TEST_CASE(
    "a ridge is the peak of the pipe that is used over the bandwidth: 201 FLOP/B on an A100, 164 on an RTX 4090, 215 "
    "on an A40") {
  // Dao-AILab/flash-attention#1913; karpathy/nanochat#60; hahnyuan/LLM-Viewer#7
  CHECK((peak("A100 SXM 40GB") / bandwidth("A100 SXM 40GB")).value == doctest::Approx(200.6).epsilon(0.001));
  CHECK((peak("RTX 4090") / bandwidth("RTX 4090")).value == doctest::Approx(163.9).epsilon(0.001));
  CHECK((FlopPerSecond{149.7e12} / BytesPerSecond{696e9}).value == doctest::Approx(215).epsilon(0.001));
  // 14.5 TFLOP/s at 9.73 FLOP/B is a roof of plain fp32: 128 lanes on each of 108 SMs at 1.05 GHz.
  CHECK(108 * 128 * 1.05e9 == doctest::Approx(14.5e12).epsilon(0.002));
  CHECK((FlopPerSecond{14.5e12} / BytesPerSecond{1.49e12}).value == doctest::Approx(9.73).epsilon(0.001));
  const Roofline r = roofline(Flop(1000), Bytes(10), peak("A100"), bandwidth("A100"));
  CHECK(r.bound == Bound::memory);
  CHECK(r.attainable.value == 100 * 2.039e12);
}

TEST_CASE("a data sheet's GB/s are powers of ten: 2039 GB/s are 2.039e12, 7.4 % less than with powers of two") {
  // citsjtu2020/LLM-Prof, hardware_spec.md; PTsolvers/gpu-workshop-JuliaCon23#7
  CHECK(bandwidth("A100 SXM 80GB").value == 2.039e12);
  CHECK(bandwidth("A100 SXM 40GB").value == 1.555e12);  // the data sheet's; a copy measured 1355, 87 % of it
  CHECK(parse_bytes("2039GB", "--l2").value() == 2'039'000'000'000);
  CHECK(parse_bytes("2039GiB", "--l2").as_double() / 2.039e12 == doctest::Approx(1.07374).epsilon(0.00001));
}

TEST_CASE("GiB and GB are different numbers under different names") {
  // alvarobartt/hf-mem#33; NERSC/sc24-dl-tutorial#5; jy-yuan/KIVI#17: 32 layers of 32 heads, 4196 tokens
  const Bytes cache = Count(32) * kv_bytes(shape(1, 32, 32, 1, 4196, 128));
  CHECK(cache.value() == 2'199'912'448);
  CHECK(text::binary_bytes(cache) == "2.05 GiB");
  CHECK(text::bytes(cache) == "2.20 GB");
}

TEST_CASE("numbers are read and written with a point and no grouping whatever the locale says") {
  // nlohmann/json#228; google/jsonnet#722; Tencent/rapidjson#72; miloyip/nativejson-benchmark#112
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const RunResult result = model_of(head(8192, 8192, 128));
  const std::string classic = run_to_json(result, {}).dump();
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  const std::string elsewhere = run_to_json(result, {}).dump();
  const double half = parse_real("0.5", "--attention-share");
  const std::string refused = complaint([] { (void)parse_real("0,5", "--attention-share"); });
  std::locale::global(before);
  CHECK(elsewhere == classic);
  CHECK(half == 0.5);
  CHECK(has(refused, "--attention-share"));
}

TEST_CASE("what is not known is null with a reason, and the JSON has its version") {
  // redis/memtier_benchmark#271; NVIDIA/nvbench#103; google/benchmark#1741
  AttentionShape s = head(512, 512, 64);
  s.dtype = Dtype::bf16;
  const auto json = run_to_json(model_of(s, "T4"), {});  // which has no bf16
  CHECK(json["schema_version"] == "1.0");
  for (const auto& a : json["algorithms"]) {
    CHECK(a["time"]["predicted_s"].is_null());
    CHECK(a["time"]["predicted_status"] == "unsupported");
    CHECK(has(a["time"]["predicted_reason"].get<std::string>(), "T4 has no bf16"));
    CHECK(a["roofline"]["bound"].is_null());
  }
  CHECK(json["amdahl"]["end_to_end_speedup"].is_null());
  CHECK_FALSE(json["amdahl"]["reason"].get<std::string>().empty());
}

TEST_CASE("the stages of an algorithm sum to its bytes and its FLOPs") {
  // NVIDIA/nvbench#92
  for (const Mask& mask : {Mask::none(), Mask::causal()}) {
    AttentionShape s = shape(2, 6, 3, 700, 900, 96, mask);
    s.head_dim_v = 64;
    RunRequest r;
    r.shape = s;
    r.pass = "both";
    r.gpu = embedded_gpu("H100");
    r.engine = Engine::model;
    for (const AlgorithmResult& a : run(r).algorithms) {
      Bytes bytes;
      Flop flop, executed;
      for (const StageResult& stage : a.stages) {
        bytes += stage.traffic.front().traffic->total();
        if (!stage.flops) continue;
        flop += stage.flops->matmul;
        executed += stage.flops->executed_matmul;
      }
      CAPTURE(a.algorithm->name);
      CHECK(bytes == a.at(Boundary::sm_l2)->traffic->total());
      CHECK(flop == a.flops.matmul);
      CHECK(executed == a.flops.executed_matmul);
    }
  }
}

// KV caches, a layer at a time

TEST_CASE("KV bytes a token: 2 x kv heads x head dim x layers, with head dim a number of its own") {
  // LMCache/LMCache#688, #2248, #836, #977; arXiv 2505.09343, Table 1; insidellms.com, memory growth chart; baseten.co,
  // November 2023
  const auto a_token = [](std::int64_t layers, std::int64_t kv_heads, std::int64_t head_dim) {
    return (Count(layers) * kv_bytes(shape(1, kv_heads, kv_heads, 1, 1, head_dim))).value();
  };
  CHECK(a_token(36, 8, 128) == 147'456);       // Qwen3-4B; hidden size over heads, 2560 / 32 = 80, would give
  CHECK(a_token(36, 8, 2560 / 32) == 92'160);  // five eighths of it
  CHECK(15296 * 16 * a_token(36, 8, 128) == 34416 * kMiB);
  CHECK(a_token(126, 8, 128) == 516'096);  // LLaMA 3.1 405B, 7.34 times the 70,272 B of a latent cache
  CHECK(516'096.0 / 70'272 == doctest::Approx(7.34).epsilon(0.001));
  CHECK(a_token(80, 8, 128) == 327'680);           // Llama 2 70B
  CHECK(a_token(80, 64, 128) == 2'621'440);        // and were it not GQA
  CHECK(128 * a_token(80, 8, 128) == 41'943'040);  // 41.9 MB for 128 tokens
  CHECK(100'000 * a_token(80, 8, 128) == std::int64_t{32'768'000'000});
  CHECK(a_token(32, 32, 128) == 524'288);  // Llama 2 7B: 19,073 tokens in 10 GB
  CHECK(10'000'000'000 / a_token(32, 32, 128) == 19'073);
  // A layer of 4K tokens: 64 MiB with 32 kv heads, 16 MiB with 8, hence a 70B model's loads faster than a 7B model's.
  CHECK(kv_bytes(shape(1, 32, 32, 1, 4096, 128)).value() == 64 * kMiB);
  CHECK(kv_bytes(shape(1, 64, 8, 1, 4096, 128)).value() == 16 * kMiB);
  CHECK((Bytes(64 * kMiB) / BytesPerSecond{4.8e9}).value == doctest::Approx(13.98e-3).epsilon(0.001));
}

// Published tables

TEST_CASE(
    "FlashAttention's figure 2: 825 and 962 GFLOP, not 66.6 and 75.2; Algorithms 0 and 3 alone move 25.2 of its 40.3 "
    "GB") {
  // arXiv 2205.14135, figure 2 left; Dao-AILab/flash-attention#741: batch 64, 16 heads, N = 1024, d = 64, forward and
  // backward
  const AttentionShape s = shape(64, 16, 16, 1024, 1024, 64);
  const double forward = matmul("naive", s).as_double();
  const Flop standard = matmul("naive", s) + matmul("naive_bwd", s),
             flash = matmul("flash_v1", s) + matmul("flash_v1_bwd", s);
  CHECK(standard.as_double() == 3 * forward);
  CHECK(flash.as_double() == 3.5 * forward);
  CHECK(standard.as_double() == doctest::Approx(824.6e9).epsilon(0.0001));
  CHECK(flash.as_double() == doctest::Approx(962.1e9).epsilon(0.0001));

  const std::int64_t NN = 64 * 16 * 1024 * 1024 * std::int64_t{2}, Nd = 64 * 16 * 1024 * 64 * 2;
  const Bytes bytes = bytes_of("naive", s, {}).total() + bytes_of("naive_bwd", s, {}).total();
  CHECK(bytes.value() == (4 + 7) * NN + (4 + 8) * Nd);
  CHECK(bytes.as_double() == doctest::Approx(25.23e9).epsilon(0.0002));
  CHECK((40.3e9 - bytes.as_double()) / static_cast<double>(NN) ==
        doctest::Approx(7.02).epsilon(0.001));  // N^2 passes of masks and dropout
  // What the A100 would need at least: the printed 41.7 and 7.3 ms are possible.
  CHECK(40.3e9 / bandwidth("A100 SXM 40GB").value == doctest::Approx(25.9e-3).epsilon(0.001));
  CHECK(4.4e9 / bandwidth("A100 SXM 40GB").value == doctest::Approx(2.83e-3).epsilon(0.001));
  CHECK((flash / peak("A100 SXM 40GB")).value == doctest::Approx(3.08e-3).epsilon(0.002));
}

TEST_CASE(
    "figure 2's 4.4 GB lie between the compulsory bytes and the 6.1 GB of the first kernels, and fewer for larger key "
    "blocks") {
  // arXiv 2205.14135, figure 2 left and middle
  const AttentionShape s = shape(64, 16, 16, 1024, 1024, 64);
  TilePlan released = tiles(16, 256);
  released.variant = FlashV1Variant::released;
  const Bytes coded = bytes_of("flash_v1", s, released).total() + bytes_of("flash_v1_bwd", s, released).total();
  CHECK(coded.as_double() == doctest::Approx(6.10e9).epsilon(0.001));
  CHECK((compulsory_bytes(s, Pass::forward) + compulsory_bytes(s, Pass::backward)).as_double() < 4.4e9);
  for (const auto& [block, algorithm1, as_coded] :
       {std::tuple{64, 6.98e9, 10.73e9}, {128, 3.62e9, 5.30e9}, {256, 1.95e9, 2.58e9}, {512, 1.11e9, 1.22e9}}) {
    CHECK(algorithm("flash_v1").closed_form(s, tiles(64, block)).back().traffic.total().as_double() ==
          doctest::Approx(algorithm1).epsilon(0.003));
    released.block_kv = block;
    CHECK(bytes_of("flash_v1", s, released).total().as_double() == doctest::Approx(as_coded).epsilon(0.003));
  }
}

TEST_CASE("FlashAttention-3's table 2: 3.538, 4.021 and 4.105 ms are 661, 582 and 570 TFLOP/s") {
  // arXiv 2407.08608, table 2: batch 4, N = 8448, 16 heads, d = 128
  const Flop flop = matmul("flash_v2", shape(4, 16, 16, 8448, 8448, 128));
  CHECK(flop.value() == 4 * 4 * 16 * 8448 * std::int64_t{8448} * 128);
  for (const auto& [ms, printed] : {std::pair{3.538, 661.0}, {4.021, 582.0}, {4.105, 570.0}}) {
    CHECK(std::round(tera(flop / Seconds{ms * 1e-3})) == printed);
  }
  CHECK(740e12 / peak("H100 SXM").value == doctest::Approx(0.748).epsilon(0.001));
}
