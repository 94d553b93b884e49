#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "scenario/gpu_file.hpp"

using namespace hbmscope;

namespace {

constexpr std::string_view kSmallGpu =
    R"({"name": "Toy", "num_sms": 4, "l2_bytes": 1048576, "smem_per_block_bytes": 65536,
 "smem_per_sm_bytes": 65536, "registers_per_sm_bytes": 262144, "hbm_bytes": 1e9, "hbm_bandwidth_bytes_per_s": 1e11,
 "peak_flop_per_s": {"fp16": {"value": 1e12, "source": "sheet", "note": "dense"}, "bf16": null},
 "sources": {"sheet": {"title": "Toy data sheet", "date": "2026-01"}}})";

std::string with(std::string_view from, std::string_view to) {
  std::string text(kSmallGpu);
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// "message | hint" of the Error that reading `text` ends in; empty if there is none.
std::string complaint(const std::string& text) {
  try {
    (void)parse_gpu(text, "toy.json");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what() + (" | " + error.hint());
  }
  return "";
}

double tera(const GpuSpec& gpu, Dtype dtype) {
  return gpu.peak[static_cast<std::size_t>(dtype)]->value / 1e12;
}

}  // namespace

TEST_CASE("every embedded GPU gives a source with a title and a date for each of its values") {
  CHECK(embedded_gpus_parsed().size() >= 12);
  for (const GpuSpec& gpu : embedded_gpus_parsed()) {
    CAPTURE(gpu.name);
    CHECK(gpu.architecture != "unknown");
    CHECK_FALSE(gpu.l2_effective_reason.empty());
    for (const auto& [key, source] : gpu.sources) {
      CAPTURE(key);
      CHECK_FALSE(source.title.starts_with("given in"));
      CHECK(source.date.starts_with("20"));
    }
    for (const char* key : {"num_sms", "l2_bytes", "l2_effective_bytes", "smem_per_block_bytes", "smem_per_sm_bytes",
                            "registers_per_sm_bytes", "hbm_bytes", "hbm_bandwidth_bytes_per_s", "launch_overhead_s"}) {
      CAPTURE(key);
      CHECK(gpu.sources.contains(key));
    }
    for (const DtypeInfo& dtype : kDtypes) {
      CHECK(gpu.sources.contains("peak_flop_per_s." + std::string(dtype.name)) ==
            gpu.peak[static_cast<std::size_t>(dtype.dtype)].has_value());
    }
  }
}

TEST_CASE("no two embedded GPUs share a name or an alias, and every one is found by each of its own") {
  std::set<std::string> seen;
  for (const GpuSpec& gpu : embedded_gpus_parsed()) {
    CHECK(seen.insert(fold_name(gpu.name)).second);
    CHECK(embedded_gpu(gpu.name).name == gpu.name);
    for (const std::string& alias : gpu.aliases) {
      CAPTURE(alias);
      CHECK(seen.insert(fold_name(alias)).second);
      CHECK(embedded_gpu(alias).name == gpu.name);
    }
  }
}

TEST_CASE("rates are dense and capacities those of the chip") {
  CHECK(tera(embedded_gpu("h100"), Dtype::fp16) ==
        doctest::Approx(1978.9 / 2).epsilon(0.001));  // the data sheet prints the sparse 1979
  CHECK(tera(embedded_gpu("H200"), Dtype::bf16) == 1979.0 / 2);
  CHECK(tera(embedded_gpu("a100"), Dtype::bf16) == 312);
  CHECK(tera(embedded_gpu("b200"), Dtype::fp8) == 9000.0 / 2);
  CHECK(tera(embedded_gpu("rtx 4090"), Dtype::fp16) ==
        doctest::Approx(330.3 / 2).epsilon(0.001));  // fp32 accumulation runs at half the rate of fp16 accumulation
  CHECK_FALSE(embedded_gpu("V100").peak[static_cast<std::size_t>(Dtype::bf16)]);
  CHECK_FALSE(embedded_gpu("A100").peak[static_cast<std::size_t>(Dtype::fp8)]);
  CHECK(embedded_gpu("H200").l2_bytes == Bytes(60 << 20));
  CHECK(embedded_gpu("H200").l2_effective_bytes == Bytes(30 << 20));
  CHECK(embedded_gpu("H200").l2_effective_provenance == Provenance::hw_counter);
  CHECK(embedded_gpu("H100 PCIe").l2_effective_bytes == Bytes(25 << 20));
  CHECK(embedded_gpu("H100 PCIe").l2_effective_provenance == Provenance::assumed);
  CHECK(embedded_gpu("H200").smem_per_block_bytes == Bytes(227 * 1024));
  CHECK(embedded_gpu("MI300X").hbm_bandwidth.value == 5.3e12);
}

TEST_CASE("an unknown GPU is never replaced by another one") {
  try {
    (void)find_gpu("H20O");
    FAIL("H20O was found");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(error.hint().find("\"H200\"") != std::string::npos);
  }
  CHECK_THROWS_AS((void)find_gpu("nowhere.json"), Error);
  CHECK_THROWS_AS((void)find_gpu(""), Error);
}

TEST_CASE("a GPU file of one's own may give bare numbers, and what it leaves out is marked as assumed") {
  const auto path = std::filesystem::temp_directory_path() / "hbmscope_test_gpu.json";
  std::ofstream(path) << kSmallGpu;
  const GpuSpec gpu = find_gpu(path.string());
  std::filesystem::remove(path);
  CHECK(gpu.name == "Toy");
  CHECK(gpu.hbm_bytes == Bytes(1'000'000'000));
  CHECK(tera(gpu, Dtype::fp16) == 1);
  CHECK_FALSE(gpu.peak[static_cast<std::size_t>(Dtype::bf16)]);
  CHECK(gpu.sources.at("num_sms").title == "given in " + path.string());
  CHECK(gpu.sources.at("peak_flop_per_s.fp16").title == "Toy data sheet; dense");
  CHECK(gpu.l2_effective_bytes == gpu.l2_bytes);
  CHECK(gpu.l2_effective_provenance == Provenance::assumed);
  CHECK(gpu.launch_overhead == kAssumedLaunchOverhead);
}

TEST_CASE("an implausible GPU file is refused by key") {
  CHECK(complaint(std::string(kSmallGpu)).empty());
  CHECK(complaint(with("\"num_sms\": 4", "\"num_sm\": 4")) ==
        "toy.json: /num_sm: is not a known key | did you mean \"num_sms\"?");
  CHECK(complaint(with("\"num_sms\": 4, ", "")) == "toy.json: /num_sms: is missing | add \"num_sms\" with its value");
  CHECK(complaint(with("\"num_sms\": 4", "\"num_sms\": 0")) ==
        "toy.json: /num_sms: must be at least 1, got 0 | write a whole number from 1 to 100000, without quotes");
  CHECK(complaint(with("\"num_sms\": 4", "\"num_sms\": {\"value\": null, \"source\": \"sheet\"}")) ==
        "toy.json: /num_sms: must not be null | give it a value");
  CHECK(complaint(with("\"smem_per_sm_bytes\": 65536", "\"smem_per_sm_bytes\": 65535")) ==
        "toy.json: /smem_per_block_bytes: must not be larger than smem_per_sm_bytes, but 65536 > 65535 | "
        "a block has a part of its SM's shared memory");
  CHECK(complaint(with("\"l2_bytes\": 1048576", "\"l2_bytes\": 1, \"l2_effective_bytes\": 2")) ==
        "toy.json: /l2_effective_bytes: must not be larger than l2_bytes, but 2 > 1 | give the part of the L2 that "
        "one SM can fill, or leave it out");
  CHECK(complaint(with("\"smem_per_block_bytes\": 65536", "\"smem_per_block_bytes\": 1")) ==
        "toy.json: /smem_per_block_bytes: must be at least 1024, got 1 | write a whole number from 1024 to "
        "1099511627776, without quotes");
  CHECK(complaint(with("1e11", "3.35")) ==
        "toy.json: /hbm_bandwidth_bytes_per_s: is implausible: 3.35 | in bytes per second: 3.35 TB/s is 3.35e12");
  CHECK(complaint(with("\"value\": 1e12", "\"value\": -1")) ==
        "toy.json: /peak_flop_per_s/fp16/value: must be more than 0, got -1 | in FLOP/s, dense: 989.5 TFLOP/s are "
        "989.5e12");
  CHECK(complaint(with("\"source\": \"sheet\"", "\"source\": \"shet\"")) ==
        "toy.json: /peak_flop_per_s/fp16/source: \"shet\" is not a key of /sources | did you mean \"sheet\"?");
  CHECK(complaint(with("{\"fp16\"", "{\"fp64\"")).starts_with("toy.json: /peak_flop_per_s/fp64: is not a known key"));
  CHECK(complaint(with("\"value\": 1e12", "\"value\": null"))
            .starts_with("toy.json: /peak_flop_per_s: needs the rate of at least one"));
  CHECK(complaint(with("\"num_sms\": 4", "\"sm_clock_hz\": [\"fast\"], \"num_sms\": 4"))
            .starts_with("toy.json: /sm_clock_hz/0: must be a whole number"));
  CHECK(complaint(with("\"num_sms\": 4", "\"sm_clock_hz\": [1700], \"num_sms\": 4"))
            .starts_with("toy.json: /sm_clock_hz/0: must be at least 100000000, got 1700"));
  CHECK(complaint(with("\"num_sms\": 4",
                       "\"sm_clock_hz\": [1700000000, 1700000000, 100000000, 1700000000], "
                       "\"num_sms\": 4")) ==
        "toy.json: /sm_clock_hz: is implausible: one clock is more than twice another | the clock of each SM at one "
        "time, in Hz");
  CHECK(complaint(with("\"num_sms\": 4", "\"sm_clock_hz\": [1700000000], \"num_sms\": 4")) ==
        "toy.json: /sm_clock_hz: must have a clock for each of the 4 SMs, but has 1 | in Hz, as gpu probe --json has "
        "them");
}
