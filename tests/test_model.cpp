// Pairs, FLOPs, tiles, bytes and plans, against arithmetic that a reader can follow.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "helpers.hpp"
#include "model/algorithm.hpp"
#include "model/plan_choice.hpp"
#include "random_shapes.hpp"
#include "scenario/gpu_file.hpp"

using namespace hbmscope;
using hbmscope::testing::Draw;
using hbmscope::testing::tiles;

namespace {

constexpr std::int64_t k16M = std::int64_t{1} << 24;

AttentionShape square(std::int64_t seqlen, std::int64_t head_dim, const Mask& mask = Mask::none()) {
  AttentionShape s;
  s.seqlen_q = s.seqlen_kv = seqlen;
  s.head_dim = s.head_dim_v = head_dim;
  s.mask = mask;
  return s;
}

/// Causal, and at most `past` keys before the query's own.
Mask causal_window(std::int64_t past) {
  return {past, 0, Alignment::bottom_right};
}

Traffic bytes_of(std::string_view name, const AttentionShape& s, const TilePlan& p) {
  return total(algorithm(name).closed_form(s, p));
}

void check_bytes(const Traffic& t, std::int64_t read, std::int64_t write) {
  CHECK(t.sum().read.value() == read);
  CHECK(t.sum().write.value() == write);
}

/// Of this process, the least of five, so that a busy machine does not decide.
template <class Work>
double milliseconds(Work work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5; ++i) {
    const std::clock_t start = std::clock();
    work();
    best = std::min(best, 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

}  // namespace

TEST_CASE("a causal mask over 2^20 tokens leaves N (N + 1) / 2 pairs, and counting them takes under a millisecond") {
  const AttentionShape s = square(1 << 20, 128, Mask::causal());
  Count pairs;
  CHECK(milliseconds([&] { pairs = live_pairs(s); }) < 1);
  CHECK(pairs.value() == std::int64_t{549'756'338'176});
  CHECK(pairs.value() == (std::int64_t{1} << 20) * ((1 << 20) + 1) / 2);
}

TEST_CASE("closed forms at 16M tokens, causal or windowed, take under 20 ms and still count exactly") {
  const std::int64_t T = k16M / 128, d = 128, e = 2;
  Traffic causal(Boundary::sm_l2), windowed(Boundary::sm_l2);
  CHECK(milliseconds([&] { causal = bytes_of("flash_v2", square(k16M, d, Mask::causal()), tiles(128, 128)); }) < 20);
  CHECK(milliseconds([&] { windowed = bytes_of("flash_v2", square(k16M, d, causal_window(4096)), tiles(128, 128)); }) <
        20);
  CHECK(causal[Tensor::K].read.value() == T * (T + 1) / 2 * 128 * d * e);
  // 4096 past keys are 32 tiles, and the query's own makes 33; the first 32 query tiles have fewer before them.
  CHECK(windowed[Tensor::K].read.value() == (33 * T - 32 * 33 / 2) * 128 * d * e);
  for (const Algorithm& a : algorithms()) {
    CAPTURE(a.name);
    CHECK(milliseconds([&] { (void)a.closed_form(square(k16M, d, causal_window(4096)), tiles(128, 128)); }) < 20);
  }
}

TEST_CASE("a count that does not fit 64 bits is an error, not a wrapped number") {
  AttentionShape s = square(kMaxSeqlen, 128);
  validate(s, Speaker::option);
  CHECK_THROWS_AS((void)live_pairs(s), Error);  // 2^64
  s.mask = Mask::causal();
  CHECK_THROWS_AS((void)live_pairs(s), Error);  // 2^63 + 2^31

  s = square(std::int64_t{1} << 31, 128);
  CHECK(live_pairs(s).value() == std::int64_t{1} << 62);
  CHECK_THROWS_AS((void)bytes_of("naive", s, {}), Error);  // S alone takes 2^63 B
  CHECK_THROWS_AS((void)algorithm("flash_v2").flops(s, tiles(128, 128)), Error);

  s = square(1, 1);
  s.batch = s.num_heads = s.num_kv_heads = std::int64_t{1} << 32;
  CHECK_THROWS_AS((void)compulsory_bytes(s, Pass::forward), Error);
}

TEST_CASE("1024 keys for each of the 2^32 queries that the model takes at most are counted: their pairs fit 64 bits") {
  CHECK(live_pairs(square(kMaxSeqlen, 128, causal_window(1023))).value() == kMaxSeqlen * 1024 - 1024 * 1023 / 2);
}

TEST_CASE("a forward pass multiplies 4 N^2 d, a flash backward pass 2.5 times and a standard one twice as much") {
  const std::int64_t N = 1000, d = 64;
  const AttentionShape s = square(N, d);
  const auto matmul = [&](std::string_view name) { return algorithm(name).flops(s, tiles(128, 128)).matmul.value(); };
  for (const std::string_view forward : {"naive", "flash_v1", "flash_v2", "split_kv"})
    CHECK(matmul(forward) == 4 * N * N * d);
  CHECK(matmul("naive_bwd") == 2 * 4 * N * N * d);
  for (const std::string_view flash : {"flash_v1_bwd", "flash_v2_bwd"}) CHECK(2 * matmul(flash) == 5 * 4 * N * N * d);
}

TEST_CASE("FLOPs of a wider or narrower V follow each product's own dimension") {
  AttentionShape s = square(300, 192);
  s.head_dim_v = 128;
  const std::int64_t pairs = 300 * 300;
  const auto matmul = [&](std::string_view name) { return algorithm(name).flops(s, tiles(64, 64)).matmul.value(); };
  CHECK(matmul("flash_v2") == pairs * 2 * (192 + 128));              // S; O
  CHECK(matmul("naive_bwd") == pairs * 2 * (2 * 192 + 2 * 128));     // dQ, dK; dV, dP
  CHECK(matmul("flash_v2_bwd") == pairs * 2 * (3 * 192 + 2 * 128));  // and S once more
}

TEST_CASE("a causal mask keeps exactly (N + 1) / (2 N) of the FLOPs: all of them at N = 1, never just half") {
  for (const std::int64_t N : {1, 2, 3, 127, 128, 1000, 4096}) {
    const auto flops = [&](const Mask& mask) {
      return algorithm("flash_v2").flops(square(N, 64, mask), tiles(128, 64));
    };
    CAPTURE(N);
    CHECK(flops(Mask::causal()).matmul.value() * 2 * N == flops(Mask::none()).matmul.value() * (N + 1));
    CHECK(flops(Mask::causal()).exp.value() == N * (N + 1) / 2);
  }
}

TEST_CASE("a causal mask visits (T + 1) / (2 T) of the tiles, T = N / max(Br, Bc), and loads as much of K and V") {
  for (const auto& [br, bc] : {std::pair<std::int64_t, std::int64_t>{128, 128}, {128, 64}, {64, 128}, {32, 256}}) {
    const std::int64_t N = 4096, T = N / std::max(br, bc);
    const AttentionShape full = square(N, 128), causal = square(N, 128, Mask::causal());
    const TilePlan p = tiles(br, bc);
    CAPTURE(br);
    CAPTURE(bc);
    for (const std::string_view name : {"flash_v1", "flash_v2", "flash_v1_bwd", "flash_v2_bwd"}) {
      CAPTURE(name);
      const Algorithm& a = algorithm(name);
      CHECK(a.flops(causal, p).executed_matmul.value() * 2 * T == a.flops(full, p).executed_matmul.value() * (T + 1));
    }
    for (const Tensor t : {Tensor::K, Tensor::V}) {
      CHECK(bytes_of("flash_v2", causal, p)[t].read.value() * 2 * T ==
            bytes_of("flash_v2", full, p)[t].read.value() * (T + 1));
    }
  }
}

TEST_CASE("a causal window of w past keys visits ceil(w / Bc) + Br / Bc tiles for each interior query tile") {
  for (const auto& [br, bc] : {std::pair<std::int64_t, std::int64_t>{128, 128}, {128, 64}, {128, 32}, {64, 64}}) {
    for (const std::int64_t w : {1, 63, 64, 65, 1000, 1024, 1025}) {
      const std::int64_t d = 128, e = 2;
      // One query tile more at the end of a long sequence is one more interior tile.
      const auto key_bytes = [&](std::int64_t N) {
        return bytes_of("flash_v2", square(N, d, causal_window(w)), tiles(br, bc))[Tensor::K].read;
      };
      CAPTURE(br);
      CAPTURE(bc);
      CAPTURE(w);
      CHECK((key_bytes(4096 + br) - key_bytes(4096)).value() == ((w + bc - 1) / bc + br / bc) * bc * d * e);
    }
  }
}

TEST_CASE("naive materialises the full S and P whatever the mask hides") {
  for (const std::string_view name : {"naive", "naive_bwd"}) {
    CHECK(bytes_of(name, square(1000, 64, Mask::causal()), {}) == bytes_of(name, square(1000, 64), {}));
    CHECK(bytes_of(name, square(1000, 64, causal_window(9)), {}) == bytes_of(name, square(1000, 64), {}));
  }
}

TEST_CASE("what each schedule moves for one head, N = 8192, d = 128, fp16") {
  const std::int64_t N = 8192, d = 128, e = 2;
  const std::int64_t NN = N * N * e, Nd = N * d * e, row = N * kStatisticBytes, acc = N * d * kAccumulatorBytes;
  const AttentionShape s = square(N, d);
  TilePlan p;
  SUBCASE("naive, three kernels: 545.3 MB") {
    check_bytes(bytes_of("naive", s, p), 2 * NN + 3 * Nd, 2 * NN + Nd);
  }
  SUBCASE("naive, S in fp32: 813.7 MB") {
    p.fp32_scores = true;
    check_bytes(bytes_of("naive", s, p), 3 * NN + 3 * Nd, 3 * NN + Nd);
  }
  SUBCASE("naive with scaling, mask and dropout kernels: 1417.7 MB") {
    p.scale_pass = p.mask_pass = p.dropout = true;
    check_bytes(bytes_of("naive", s, p), 5 * NN + 3 * Nd, 5 * NN + N * N + Nd);
  }
  SUBCASE("naive with 128 x 128 GEMM tiles, 64 each way: 941.6 MB") {
    p.gemm_tile = {128, 128};
    check_bytes(bytes_of("naive", s, p), 2 * NN + 3 * 64 * Nd, 2 * NN + Nd);
  }
  SUBCASE("naive with an online or a three-pass softmax reads S once or twice more") {
    for (const std::int64_t reads : {2, 3}) {
      p.softmax_reads = reads;
      check_bytes(bytes_of("naive", s, p), (1 + reads) * NN + 3 * Nd, 2 * NN + Nd);
    }
  }
  SUBCASE("naive backward, P saved: 956.3 MB") {
    check_bytes(bytes_of("naive_bwd", s, p), 5 * NN + 5 * Nd, 2 * NN + 3 * Nd);
  }
  SUBCASE("flash_v2, 64 query tiles: 272.7 MB, and half as many twice that") {
    check_bytes(bytes_of("flash_v2", s, tiles(128, 128)), 64 * 2 * Nd + Nd, Nd + row);
    check_bytes(bytes_of("flash_v2", s, tiles(64, 128)), 128 * 2 * Nd + Nd, Nd + row);
  }
  SUBCASE("FlashAttention-3's 128 x 176 with clusters of 2: 138.4 MB") {
    p = tiles(128, 176);
    p.cluster = 2;
    check_bytes(bytes_of("flash_v2", s, p), 32 * 2 * Nd + Nd, Nd + row);
  }
  SUBCASE("flash_v2, causal, 64 * 65 / 2 tiles: 140.5 MB") {
    check_bytes(bytes_of("flash_v2", square(N, d, Mask::causal()), tiles(128, 128)), 64 * 65 / 2 * 128 * 2 * d * e + Nd,
                Nd + row);
  }
  SUBCASE("flash_v2, causal windows: 39.6 MB for 1024 keys, 108.0 MB for 4096") {
    const std::int64_t tile = 128 * 2 * d * e;  // of K and V
    check_bytes(bytes_of("flash_v2", square(N, d, causal_window(1024)), tiles(128, 128)),
                (64 * 9 - 8 * 9 / 2) * tile + Nd, Nd + row);
    check_bytes(bytes_of("flash_v2", square(N, d, causal_window(4096)), tiles(128, 128)),
                (64 * 33 - 32 * 33 / 2) * tile + Nd, Nd + row);
  }
  SUBCASE("flash_v1 as released, 16 x 128, 64 passes: 673.2 MB") {
    p = tiles(16, 128);
    p.variant = FlashV1Variant::released;
    check_bytes(bytes_of("flash_v1", s, p), 2 * Nd + 64 * Nd + 63 * (acc + row), 63 * acc + Nd + 64 * row);
  }
  SUBCASE("Algorithm 1 with 128 x 192, 43 passes: 280.4 MB, and what it initialises") {
    const std::vector<StageTraffic> stages = algorithm("flash_v1").closed_form(s, tiles(128, 192));
    REQUIRE(stages.size() == 2);
    check_bytes(stages[0].traffic, 0, Nd + 2 * row);
    check_bytes(stages[1].traffic, 2 * Nd + 43 * (2 * Nd + 2 * row), 43 * (Nd + 2 * row));
  }
  SUBCASE("flash_v1 backward as released, 16 x 128: 813.7 MB") {
    p = tiles(16, 128);
    p.variant = FlashV1Variant::released;
    check_bytes(bytes_of("flash_v1_bwd", s, p), 2 * Nd + 64 * (2 * Nd + row) + Nd + 63 * (acc + row),
                2 * Nd + 63 * acc + Nd + row);
  }
  SUBCASE("flash_v2 backward, 64 x 128: 564.2 MB, or 832.6 MB where an atomic add reads too") {
    p = tiles(64, 128);
    const std::int64_t read = 2 * Nd + 2 * Nd + 64 * (2 * Nd + 2 * row) + acc;
    const std::int64_t write = row + acc + 64 * acc + 2 * Nd + Nd;
    check_bytes(bytes_of("flash_v2_bwd", s, p), read, write);
    p.atomics = Atomics::rmw;
    check_bytes(bytes_of("flash_v2_bwd", s, p), read + 64 * acc, write);
  }
  SUBCASE("compulsory: Q, K, V in and O out, 8.39 MB; backward with dO in and dQ, dK, dV out") {
    check_bytes(compulsory_traffic(s, Pass::forward), 3 * Nd, Nd);
    check_bytes(compulsory_traffic(s, Pass::backward), 4 * Nd, 3 * Nd);
  }
}

TEST_CASE("the last, ragged key tile is loaded as long as it is: N = 1000 in tiles of 128") {
  const auto read = [](const Mask& mask, Tensor t) {
    return bytes_of("flash_v2", square(1000, 64, mask), tiles(128, 128))[t].read.value();
  };
  const auto write = [](Tensor t) { return bytes_of("flash_v2", square(1000, 64), tiles(128, 128))[t].write.value(); };
  CHECK(read(Mask::none(), Tensor::Q) == 1000 * 64 * 2);
  CHECK(read(Mask::none(), Tensor::K) == 8 * 1000 * 64 * 2);
  CHECK(read(Mask::causal(), Tensor::V) == ((1 + 2 + 3 + 4 + 5 + 6 + 7) * 128 + 1000) * 64 * 2);
  CHECK(write(Tensor::O) == 1000 * 64 * 2);
  CHECK(write(Tensor::LSE) == 1000 * 4);
}

TEST_CASE("splitting the keys costs 2 S (d + 1) 4 + (S - 1) d e bytes a query row over one pass") {
  AttentionShape s = square(65536, 128);
  s.seqlen_q = 1;
  s.num_heads = 16;
  s.num_kv_heads = 2;
  TilePlan p = tiles(64, 128);
  p.num_kv_splits = 1;
  const std::int64_t once = bytes_of("split_kv", s, p).total().value();
  for (const std::int64_t S : {2, 8, 32, 128}) {
    p.num_kv_splits = S;
    CHECK(bytes_of("split_kv", s, p).total().value() - once ==
          s.num_heads * (2 * S * (128 + 1) * 4 + (S - 1) * 128 * 2));
  }
}

TEST_CASE(
    "packing the query heads of a kv head reads K and V once a group in decode, and no less where tiles are full") {
  AttentionShape s = square(4096, 128);
  s.num_heads = 32;
  s.num_kv_heads = 4;
  TilePlan packed = tiles(64, 64), apart = packed;
  packed.pack_gqa = true;
  apart.pack_gqa = false;
  const auto keys = [&](const TilePlan& p) { return bytes_of("flash_v2", s, p)[Tensor::K].read.value(); };
  CHECK(keys(packed) == keys(apart));
  s.seqlen_q = 1;
  CHECK(keys(packed) == 4 * 4096 * 128 * 2);
  CHECK(keys(apart) == 8 * keys(packed));
}

TEST_CASE("no algorithm moves less than the compulsory bytes") {
  Draw draw(5);
  for (int i = 0; i < 2000; ++i) {
    const AttentionShape s = hbmscope::testing::random_shape(draw, 60);
    TilePlan p = hbmscope::testing::random_plan(draw, 20);
    p.variant = FlashV1Variant::paper;  // the released kernels never touch O of a query tile without a key
    for (const Algorithm& a : algorithms()) {
      CAPTURE(a.name);
      CAPTURE(hbmscope::testing::describe(s, p));
      REQUIRE(total(a.closed_form(s, p)).total() >= compulsory_bytes(s, a.pass));
    }
  }
}

TEST_CASE("the default tile is the largest that fits each GPU's SMEM") {
  const auto chosen = [](std::string_view gpu, std::int64_t head_dim) {
    return choose_plan(algorithm("flash_v2"), square(8192, head_dim), {}, embedded_gpu(gpu).smem_per_block_bytes);
  };
  const auto is = [](const TilePlan& p, std::int64_t block_q, std::int64_t block_kv) {
    return p.block_q == block_q && p.block_kv == block_kv;
  };
  for (const GpuSpec& gpu : embedded_gpus_parsed()) {
    CAPTURE(gpu.name);
    CHECK(is(chosen(gpu.name, 64), 128, 128));  // (128 + 2 x 128) x 64 x 2 B = 48 KiB
    // At d = 128 they are 96 KiB, which T4 and MI300X with 64 KiB do not have.
    CHECK(is(chosen(gpu.name, 128), 128, gpu.smem_per_block_bytes >= Bytes(96 << 10) ? 128 : 64));
  }
  CHECK(is(chosen("T4", 128), 128, 64));
  CHECK(is(chosen("H100", 256), 128, 128));    // 192 KiB of 227
  CHECK(is(chosen("A100", 256), 128, 64));     // 128 KiB of 163
  CHECK(is(chosen("RTX 4090", 256), 64, 64));  // 96 KiB of 99
}

TEST_CASE("a chosen plan fits for any shape and memory, and what was asked for stays") {
  Draw draw(17);
  for (int i = 0; i < 500; ++i) {
    AttentionShape s = square(draw.between(1, 5000), draw.between(1, 300));
    s.head_dim_v = draw.between(1, 300);
    const Bytes sram(draw.between(8 << 10, 232448));
    for (const Algorithm& a : algorithms()) {
      if (a.name.starts_with("flash_v1")) continue;  // Algorithm 1 rounds M / 4d up, and has one d for all
      const TilePlan p = choose_plan(a, s, {}, sram);
      CAPTURE(a.name);
      CHECK(smem_tally(a, s, p).total <= sram);
      TilePlan wanted;
      wanted.block_q = 1;
      CHECK(choose_plan(a, s, wanted, Bytes(1 << 20)).block_q == 1);
    }
  }
}

TEST_CASE("a tile that was asked for and does not fit is refused with the sum") {
  const AttentionShape s = square(4096, 256);
  try {
    (void)choose_plan(algorithm("flash_v2"), s, tiles(128, 64), Bytes(101376));
    FAIL("a tile of 131072 B was taken");
  } catch (const Error& error) {
    const std::string said = error.what();
    CHECK(said.find("128 x 64") != std::string::npos);
    CHECK(said.find("101376 B") != std::string::npos);
    CHECK(said.find("Q 128 x 256 x 2 + K 64 x 256 x 2 + V 64 x 256 x 2 = 131072 B") != std::string::npos);
    CHECK(error.hint().find("--block-q") != std::string::npos);
  }
  TilePlan chosen = tiles(128, 64);
  chosen.cluster = 1;
  CHECK(choose_plan(algorithm("flash_v2"), s, tiles(128, 64), Bytes(131072)) == chosen);
}

TEST_CASE("naive gets 128 x 128 GEMM tiles unless others are asked for, and no other algorithm gets any") {
  const AttentionShape s = square(4096, 128);
  TilePlan wanted;
  wanted.gemm_tile = {256, 64};
  CHECK(choose_plan(algorithm("naive"), s, {}, Bytes(232448)).gemm_tile == kDefaultGemmTile);
  CHECK(choose_plan(algorithm("naive"), s, wanted, Bytes(232448)).gemm_tile == wanted.gemm_tile);
  CHECK_FALSE(choose_plan(algorithm("flash_v2"), s, wanted, Bytes(232448)).gemm_tile);
}

TEST_CASE("12 heads in decode take 9 key splits to fill an A100's 108 SMs, 11 to fill an H100's 132") {
  AttentionShape s = square(65536, 128);
  s.seqlen_q = 1;
  s.num_heads = s.num_kv_heads = 12;
  CHECK(choose_kv_splits(s, tiles(64, 128), embedded_gpu("A100").num_sms) == 108 / 12);
  CHECK(choose_kv_splits(s, tiles(64, 128), embedded_gpu("H100").num_sms) == 132 / 12);
}

TEST_CASE("key splits stop at 128, at the number of key tiles, and at 1 where the query tiles nearly fill the GPU") {
  AttentionShape s = square(1 << 20, 128);
  s.seqlen_q = 1;
  CHECK(choose_kv_splits(s, tiles(64, 128), 132) == 128);
  s.seqlen_kv = 1000;
  CHECK(choose_kv_splits(s, tiles(64, 128), 132) == 8);  // ceil(1000 / 128)
  s.num_heads = s.num_kv_heads = 106;                    // 80 % of 132 are 105.6
  CHECK(choose_kv_splits(s, tiles(64, 128), 132) == 1);
  // Packed, the 8 query heads of a kv head are one tile: 4 tiles, and 33 splits fill 132 SMs.
  s.seqlen_kv = 1 << 20;
  s.num_heads = 32;
  s.num_kv_heads = 4;
  CHECK(choose_kv_splits(s, tiles(64, 128), 132) == 33);
}
