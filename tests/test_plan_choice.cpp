#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

#include "model/plan_choice.hpp"
#include "model/roofline.hpp"
#include "scenario/gpu_file.hpp"

using namespace hbmscope;

namespace {

AttentionShape decode(std::int64_t heads, std::int64_t kv_heads, std::int64_t seqlen_q = 1) {
  AttentionShape s;
  s.num_heads = heads;
  s.num_kv_heads = kv_heads;
  s.seqlen_q = seqlen_q;
  return s;  // 8,192 keys, d = 128, fp16
}

const Bytes kSram = embedded_gpu("H100 SXM").smem_per_block_bytes;

TilePlan chosen(std::string_view name, const AttentionShape& s, const TilePlan& wanted = {}, Bytes sram = kSram) {
  return choose_plan(algorithm(name), s, wanted, sram);
}

}  // namespace

TEST_CASE("a query tile has 128 rows, or the fewest of 16, 32 and 64 that hold all there are") {
  for (const auto& [rows, block_q] : {std::pair<std::int64_t, std::int64_t>{1, 16},
                                      {16, 16},
                                      {17, 32},
                                      {32, 32},
                                      {33, 64},
                                      {64, 64},
                                      {65, 128},
                                      {127, 128},
                                      {128, 128},
                                      {8192, 128}}) {
    for (const std::string_view name : {"flash_v2", "split_kv", "flash_v2_bwd"}) {
      CAPTURE(name);
      CAPTURE(rows);
      const TilePlan plan = chosen(name, decode(1, 1, rows));
      CHECK(plan.block_q == block_q);
      CHECK(plan.block_kv == 128);
    }
  }
}

TEST_CASE("packed, the query heads of a kv head are rows of one tile: 4 queries of 8 heads are 32") {
  const AttentionShape s = decode(64, 8, 4);
  CHECK(chosen("split_kv", s).block_q == 32);
  CHECK(chosen("flash_v2", s).block_q == 16);
  TilePlan other_way_round;
  other_way_round.pack_gqa = true;
  CHECK(chosen("flash_v2", s, other_way_round).block_q == 32);
  other_way_round.pack_gqa = false;
  CHECK(chosen("split_kv", s, other_way_round).block_q == 16);
}

TEST_CASE("a block that was asked for stays, and little SMEM makes either smaller") {
  TilePlan wanted;
  wanted.block_q = 64;
  CHECK(chosen("split_kv", decode(1, 1), wanted).block_q == 64);
  wanted = {};
  wanted.block_kv = 256;
  CHECK(chosen("split_kv", decode(1, 1), wanted).block_q == 16);
  CHECK(chosen("split_kv", decode(1, 1), wanted).block_kv == 256);
  // 16 query rows and 64 keys take (16 + 2 x 64) x 128 x 2 B = 36,864 B; with 128 keys 69,632 B.
  const TilePlan tight = chosen("split_kv", decode(1, 1), {}, Bytes(40'000));
  CHECK(tight.block_q == 16);
  CHECK(tight.block_kv == 64);
}

TEST_CASE("one token of a GQA model waits for HBM and not for the padding of its tile") {
  // 32 query heads over 8 kv heads: 4 rows. Each of 64 key tiles costs 2 (128 + 128) FLOP a pair of the whole tile.
  const AttentionShape s = decode(32, 8);
  const Algorithm& a = algorithm("split_kv");
  const FlopCount flops = a.flops(s, chosen("split_kv", s));
  CHECK(flops.executed_matmul.value() == 8 * 64 * (16 * 128) * 512);
  CHECK(flops.matmul.value() == 32 * 8192 * 512);
  const GpuSpec& gpu = embedded_gpu("H100 SXM");
  const Seconds of_bytes = compulsory_bytes(s, Pass::decode) / gpu.hbm_bandwidth;
  const FlopPerSecond peak = *gpu.peak[static_cast<std::size_t>(Dtype::fp16)];
  CHECK(flops.executed_matmul / peak < of_bytes);
  TilePlan full;
  full.block_q = full.block_kv = 128;
  CHECK(a.flops(s, full).executed_matmul.value() == 8 * flops.executed_matmul.value());
}

TEST_CASE("flash is flash_v3 on Hopper in 16 and in 8 bits, and flash_v2 elsewhere") {
  const GpuSpec &hopper = embedded_gpu("H200"), &ampere = embedded_gpu("A100");
  AttentionShape s;
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16, Dtype::fp8}) {
    s.dtype = dtype;
    CHECK(fastest_flash(s, hopper) == "flash_v3");
    CHECK(fastest_flash(s, ampere) == "flash_v2");
  }
  s.dtype = Dtype::fp32;
  CHECK(fastest_flash(s, hopper) == "flash_v2");
}

TEST_CASE("a GPU lacks something for flash_v3 unless it is Hopper, and for clusters before Hopper") {
  const auto lacks = [](std::string_view name, std::int64_t cluster, const GpuSpec& gpu) {
    TilePlan plan;
    plan.cluster = cluster;
    return !lacking(algorithm(name), plan, gpu).empty();
  };
  for (const char* gpu : {"H100 SXM", "H100 PCIe", "H200"}) CHECK_FALSE(lacks("flash_v3", 2, embedded_gpu(gpu)));
  for (const char* gpu : {"A100", "T4", "V100", "L40S", "MI300X"}) {
    CAPTURE(gpu);
    CHECK(lacks("flash_v3", 1, embedded_gpu(gpu)));
    CHECK(lacks("flash_v2", 2, embedded_gpu(gpu)));
    CHECK_FALSE(lacks("flash_v2", 1, embedded_gpu(gpu)));
    CHECK_FALSE(lacks("naive", 1, embedded_gpu(gpu)));
  }
  CHECK(lacks("flash_v3", 1, embedded_gpu("B200")));
  CHECK_FALSE(lacks("flash_v2", 2, embedded_gpu("B200")));
  GpuSpec own = embedded_gpu("A100");
  for (const char* says_nothing : {"unknown", "", "NVIDIA Hopper", "compute capability"}) {
    own.architecture = says_nothing;
    CHECK_FALSE(lacks("flash_v3", 2, own));
  }
}

TEST_CASE(
    "the tile of flash_v3 depends on head_dim, at 64 on how much of it a causal mask hides, at 128 on how many keys "
    "there are, and from there on its cluster") {
  const auto tile = [](std::int64_t head_dim, std::int64_t seqlen, bool causal) {
    AttentionShape s;
    s.head_dim = s.head_dim_v = head_dim;
    s.seqlen_q = s.seqlen_kv = seqlen;
    if (causal) s.mask = Mask::causal();
    const TilePlan plan = choose_plan(algorithm("flash_v3"), s, {}, Bytes(232448));
    return std::pair(plan.block_q, plan.block_kv);
  };
  CHECK(tile(64, 8192, false) == std::pair<std::int64_t, std::int64_t>{192, 128});
  CHECK(tile(64, 8192, true) == std::pair<std::int64_t, std::int64_t>{192, 128});
  CHECK(tile(64, 2048, true) == std::pair<std::int64_t, std::int64_t>{192, 128});
  CHECK(tile(40, 1024, true) == std::pair<std::int64_t, std::int64_t>{128, 128});
  CHECK(tile(64, 128, false) == std::pair<std::int64_t, std::int64_t>{128, 128});
  CHECK(tile(128, 1024, true) == std::pair<std::int64_t, std::int64_t>{128, 128});
  CHECK(tile(128, 4096, false) == std::pair<std::int64_t, std::int64_t>{128, 128});
  CHECK(tile(128, 8192, true) == std::pair<std::int64_t, std::int64_t>{128, 176});
  CHECK(tile(256, 8192, false) == std::pair<std::int64_t, std::int64_t>{128, 80});
  AttentionShape few;  // at 128 columns the keys decide, however few queries there are
  few.seqlen_q = 1024, few.seqlen_kv = 4097, few.mask = Mask::causal();
  CHECK(choose_plan(algorithm("flash_v3"), few, {}, Bytes(232448)).block_kv == 176);
  for (const auto& [head_dim, block_q] : {std::pair{64, 192}, {128, 192}, {256, 128}}) {
    AttentionShape s;
    s.dtype = Dtype::fp8;
    s.head_dim = s.head_dim_v = head_dim;
    s.seqlen_q = s.seqlen_kv = 16384;
    const TilePlan plan = choose_plan(algorithm("flash_v3"), s, {}, Bytes(232448));
    CHECK(std::array{plan.block_q, plan.block_kv, plan.cluster} == std::array<std::int64_t, 3>{block_q, 96, 1});
  }

  AttentionShape s;
  s.head_dim = s.head_dim_v = 256;
  s.seqlen_q = s.seqlen_kv = 8192;
  const auto cluster = [&](const TilePlan& wanted = {}) {
    return choose_plan(algorithm("flash_v3"), s, wanted, Bytes(232448)).cluster;
  };
  CHECK(cluster() == 2);
  TilePlan wanted;
  wanted.cluster = 1;  // asked for, so it stays
  CHECK(cluster(wanted) == 1);
  wanted.cluster = 0, wanted.block_q = 64, wanted.block_kv = 64;  // another tile than that of choice
  CHECK(cluster(wanted) == 1);
  CHECK(choose_plan(algorithm("flash_v2"), s, {}, Bytes(232448)).cluster == 1);
  s.mask = Mask::causal();
  CHECK(cluster() == 1);
  s.mask = Mask::none();
  s.mask.alignment = Alignment::top_left;  // of nothing
  CHECK(cluster() == 2);
  s.seqlen_q = 8191;
  CHECK(cluster() == 1);
  s.seqlen_q = 16384, s.head_dim = s.head_dim_v = 128;
  CHECK(cluster() == 2);
  s.head_dim = s.head_dim_v = 64;
  CHECK(cluster() == 1);

  s.head_dim = s.head_dim_v = 128;
  s.seqlen_q = s.seqlen_kv = 1024;
  wanted = {};
  wanted.cluster = 2;  // which the tile of choice without one has not
  CHECK(choose_plan(algorithm("flash_v3"), s, wanted, Bytes(232448)).block_kv == 176);
  CHECK(choose_plan(algorithm("flash_v3"), s, {}, Bytes(232448)).block_kv == 128);
  CHECK(choose_plan(algorithm("naive"), s, wanted, Bytes(232448)).cluster == 1);
}
