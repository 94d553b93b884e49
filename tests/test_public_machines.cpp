// What users of attention kernels and roofline tools ran into, as public reports have it: the numbers of the report,
// and what holds beyond them. Here: GPUs and units, the whole step, published tables.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <locale>
#include <string>
#include <tuple>
#include <utility>

#include "cli/run_options.hpp"
#include "core/parse.hpp"
#include "public_cases.hpp"
#include "report/format.hpp"
#include "report/run_json.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

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
