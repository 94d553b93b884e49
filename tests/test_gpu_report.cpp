#include <doctest/doctest.h>

#include <string>

#include "report/gpu_report.hpp"
#include "scenario/gpu_file.hpp"

using namespace hbmscope;

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string line_with(const std::string& text, std::string_view part) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  const std::size_t start = text.rfind('\n', at) + 1;
  return text.substr(start, text.find('\n', at) - start);
}

void check_width(const std::string& text) {
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    CAPTURE(text.substr(at, text.find('\n', at) - at));
    CHECK(text.find('\n', at) - at <= 100);
  }
}

std::string show(const GpuSpec& gpu) {
  return to_text(gpu_document(gpu), 100, false);
}

}  // namespace

TEST_CASE("the list has one line a GPU, within 100 columns") {
  const std::string text = to_text(gpu_list_document(embedded_gpus_parsed()), 100, false);
  for (const GpuSpec& gpu : embedded_gpus_parsed()) CHECK(contains(text, "\n  " + gpu.name + " "));
  check_width(text);
}

TEST_CASE("the list gives effective L2, dense rates and the ridge, and '-' for a dtype that the GPU does not have") {
  const std::string text = to_text(gpu_list_document(embedded_gpus_parsed()), 100, false);
  const std::string h200 = line_with(text, "  H200 ");
  for (const char* part : {" 132 ", "60 MiB", "30 MiB", "227 KiB", "4.80 TB/s", "989.5", "1,979"}) {
    CAPTURE(part);
    CHECK(contains(h200, part));
  }
  CHECK(h200.ends_with(" " + std::to_string(static_cast<int>(989.5e12 / 4.8e12 + 0.5))));
  const std::string v100 = line_with(text, "  V100");
  CHECK(contains(v100, " 125 "));
  CHECK(contains(v100, "-      -"));
  CHECK(v100.ends_with(" " + std::to_string(static_cast<int>(125e12 / 900e9 + 0.5))));  // of fp16, as there is no bf16
  CHECK(contains(text, "- the GPU has no such rate"));
}

TEST_CASE("the list as JSON holds plain SI numbers, and null with a reason for a rate that is not there") {
  const auto json = gpu_list_to_json(embedded_gpus_parsed(), {"hbmscope", "gpu", "list"});
  REQUIRE(json["gpus"].size() == embedded_gpus_parsed().size());
  for (const auto& gpu : json["gpus"]) {
    if (gpu["name"] != "V100 SXM2 32GB") continue;
    CHECK(gpu["l2_bytes"] == 6 * 1024 * 1024);
    CHECK(gpu["peak_flop_per_s"]["fp16"] == 125e12);
    CHECK(gpu["peak_flop_per_s"]["bf16"].is_null());
    CHECK(gpu["ridge_flop_per_byte"]["fp8"].is_null());
    CHECK(gpu["ridge_flop_per_byte"]["fp16"] == 125e12 / 900e9);
  }
  CHECK(json["reason"].is_string());
}

TEST_CASE("show gives every value a unit, a source and its date, and marks what is assumed") {
  for (const GpuSpec& gpu : embedded_gpus_parsed()) {
    CAPTURE(gpu.name);
    const std::string text = show(gpu);
    check_width(text);
    std::string unwrapped;
    for (const char c : text) {
      if (c == ' ' || c == '\n') {
        if (!unwrapped.ends_with(' ')) unwrapped += ' ';
      } else {
        unwrapped += c;
      }
    }
    for (const auto& [key, source] : gpu.sources) {
      CAPTURE(key);
      CHECK(contains(unwrapped, source.title + ", " + source.date));
    }
    CHECK(contains(unwrapped, gpu.l2_effective_reason));
    CHECK(contains(line_with(text, "kernel launch"), "assumed"));
    CHECK(contains(line_with(text, "effective L2"),
                   gpu.l2_effective_provenance == Provenance::assumed ? "assumed" : "measured"));
  }
  const std::string t4 = show(embedded_gpu("T4"));
  CHECK(contains(line_with(t4, "bf16 rate"), "not supported"));
  CHECK(contains(line_with(t4, "SMEM per CTA"), "64 KiB (65,536 B)"));
}

TEST_CASE("show's JSON is a GPU file that reads back to the same GPU") {
  for (const GpuSpec& gpu : embedded_gpus_parsed()) {
    CAPTURE(gpu.name);
    const GpuSpec again = parse_gpu(gpu_to_json(gpu).dump(2), "again.json");
    CHECK(again.name == gpu.name);
    CHECK(again.aliases == gpu.aliases);
    CHECK(again.architecture == gpu.architecture);
    CHECK(again.num_sms == gpu.num_sms);
    CHECK(again.l2_bytes == gpu.l2_bytes);
    CHECK(again.l2_effective_bytes == gpu.l2_effective_bytes);
    CHECK(again.l2_effective_reason == gpu.l2_effective_reason);
    CHECK(again.l2_effective_provenance == gpu.l2_effective_provenance);
    CHECK(again.smem_per_block_bytes == gpu.smem_per_block_bytes);
    CHECK(again.smem_per_sm_bytes == gpu.smem_per_sm_bytes);
    CHECK(again.registers_per_sm_bytes == gpu.registers_per_sm_bytes);
    CHECK(again.hbm_bytes == gpu.hbm_bytes);
    CHECK(again.hbm_bandwidth == gpu.hbm_bandwidth);
    CHECK(again.peak == gpu.peak);
    CHECK(again.launch_overhead == gpu.launch_overhead);
    REQUIRE(again.sources.size() == gpu.sources.size());
    for (const auto& [key, source] : gpu.sources) {
      CAPTURE(key);
      CHECK(again.sources.at(key).title == source.title);
      CHECK(again.sources.at(key).date == source.date);
    }
  }
}

TEST_CASE("a GPU file without sources and with one rate is shown, with no date made up") {
  const GpuSpec toy = parse_gpu(R"({"name": "Toy", "num_sms": 4, "l2_bytes": 1048576, "smem_per_block_bytes": 65536,
    "smem_per_sm_bytes": 65536, "registers_per_sm_bytes": 262144, "hbm_bytes": 1e9, "hbm_bandwidth_bytes_per_s": 1e11,
    "peak_flop_per_s": {"fp32": 1e12}})",
                                "toy.json");
  const std::string text = show(toy);
  CHECK(contains(text, "given in toy.json, undated"));
  CHECK(contains(line_with(text, "effective L2"), "assumed"));
  CHECK_FALSE(contains(text, "ridge"));  // neither bf16 nor fp16
}
