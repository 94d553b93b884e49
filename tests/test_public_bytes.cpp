// What users of attention kernels and roofline tools ran into, as public reports have it: the numbers of the report,
// and what holds beyond them. Here: GQA, FLOPs, bytes and what they cost, KV caches.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "cli/run_options.hpp"
#include "public_cases.hpp"
#include "random_shapes.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

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
    AttentionShape s = random_shape(draw, 60);
    const std::int64_t expected = 2 * (s.head_dim + s.head_dim_v) * pairs(s);
    for (const std::string_view name : kForward) {
      const FlopCount count = algorithm(name).flops(s, random_plan(draw, 30));
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
