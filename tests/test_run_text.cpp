// The sentences, tables and notes of a run say the same thing.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli_checks.hpp"
#include "process.hpp"

using namespace hbmscope::testing;

namespace {

/// The report with every gap and line break as one blank.
std::string report_of(std::string_view arguments) {
  const Outcome outcome = run_program(words("run --engine sim " + std::string(arguments)));
  CAPTURE(arguments);
  REQUIRE(outcome.code == 0);
  std::istringstream in(outcome.out);
  std::string text, word;
  while (in >> word) text += word + " ";
  return text;
}

/// The report before its first table: the answer.
std::string answer_of(const std::string& report) {
  return report.substr(0, report.find("Through HBM"));
}

/// The time table's row of an algorithm.
std::string time_row(const std::string& report, const std::string& algorithm) {
  const std::size_t table = report.find(" Time FLOP "), row = report.find(" " + algorithm + " ", table);
  REQUIRE(row != std::string::npos);
  return report.substr(row, report.find(" - ", row) - row);
}

}  // namespace

TEST_CASE("a difference of a few per cent is told as such, and equal bytes as about the same") {
  // 16 heads on one cache of 8 k keys: naive writes S and P, 2 x 16 x 8,192 x 2 B; split_kv as much in partial outputs.
  const std::string equal = report_of("--pass decode --heads 16 --kv-heads 1 --seqlen 8k --algorithm naive,split_kv");
  CHECK(has(answer_of(equal), ": about the same, for"));
  const std::string close = report_of("--pass decode --heads 8 --kv-heads 1 --seqlen 8k --algorithm naive,flash_v2");
  // K and V are 4 MiB; eight heads' S and P are 256 KiB more: 1/17.
  CHECK(has(answer_of(close), ": 6 % less, for"));
  for (const std::string& report : {equal, close}) {
    CHECK_FALSE(has(report, "no less"));
    CHECK_FALSE(has(report, "1.0x less"));
    CHECK_FALSE(has(report, "1.1x less"));
  }
}

TEST_CASE("the headline names the bound of the time table, whichever that is") {
  const std::string usual = report_of("--seqlen 8k");
  CHECK(has(answer_of(usual), "Naive waits for HBM"));
  CHECK(has(answer_of(usual), "flash is limited by the tensor cores"));
  CHECK(has(time_row(usual, "naive"), " HBM "));
  CHECK(has(time_row(usual, "flash_v2"), " tensor "));
  CHECK_FALSE(has(usual, "launches are more than half"));
  CHECK_FALSE(has(usual, "padding:"));

  const std::string brief = report_of("--seqlen 256");
  CHECK(has(answer_of(brief), "Both are mostly launches: naive 12.0 us of 12.2 us"));
  CHECK(has(time_row(brief, "naive"), " launches "));
  CHECK(has(time_row(brief, "flash_v2"), " launches "));
  CHECK(has(brief, "launches are more than half of the predicted time of naive, flash_v1 and flash_v2"));

  const std::string padded = report_of("--seqlen 8k --heads 8 --head-dim 512 --window 63");
  CHECK(has(time_row(padded, "naive"), " tensor, padding "));
  CHECK(has(answer_of(padded), "Naive is limited by the tensor cores, counting padded and masked tiles"));
  CHECK(has(padded, "tensor, padding: naive executes 1.10 TFLOP"));

  const auto json = nlohmann::json::parse(run_program(words("run --engine sim --seqlen 256 --json -")).out);
  for (const auto& algorithm : json["algorithms"]) CHECK(algorithm["time"]["predicted_limit"] == "launches");
}

TEST_CASE("S and P that fit the L2 do not make a run one of launches") {
  // 16 MiB of S and P fit the effective 25 MiB, and launches of 10 ns decide nothing.
  const TemporaryFolder folder;
  nlohmann::json gpu = nlohmann::json::parse(run_program({"gpu", "show", "h100", "--json", "-"}).out);
  gpu["launch_overhead_s"]["value"] = 1e-8;
  const std::string report = report_of("--seqlen 2k --gpu " + folder.write("quick.json", gpu.dump()));
  CHECK(has(report, "L2-resident"));
  CHECK_FALSE(has(report, "launches"));
}

TEST_CASE("every run with both tables says what L2 holds of K and V, and of S and P of all heads") {
  CHECK(has(report_of("--seqlen 8k"),
            "Why two tables: K and V of the heads that run at one time (4 MiB) stay in L2; S and P of all heads (256 "
            "MiB) cannot. "));
  CHECK(has(report_of("--seqlen 256"), "S and P of all heads (256 KiB) fit the L2, so naive reads them there"));
  CHECK(has(report_of("--seqlen 1k --heads 32"), "S and P of all heads (128 MiB) cannot. "));
  CHECK(has(report_of("--algorithm naive"), "Why two tables: S and P of all heads (256 MiB) cannot stay in L2. "));
  for (const char* other : {"--algorithm flash_v2", "--pass backward --seqlen 1k", "--l2 none --seqlen 1k",
                            "--pass decode --heads 8 --kv-heads 1 --seqlen 64k"}) {
    CAPTURE(other);
    CHECK(has(report_of(other), "Why two tables: "));
  }
  CHECK_FALSE(has(run_program(words("run --engine model")).out, "Why two tables"));
}

TEST_CASE("naive's row is labelled by what most of its bytes are") {
  CHECK(has(report_of("--seqlen 8k"), "naive S and P in HBM, 3 kernels"));
  // K of a head is 32 times what L2 holds, so that all 8 query heads fetch it; they stream V side by side.
  const std::string cache = report_of("--pass decode --heads 64 --kv-heads 8 --seqlen 128k --l2 1MiB");
  CHECK(has(cache, "naive mostly K and V, 3 kernels"));
  CHECK(has(cache, "of its bytes are K and V, each read 4.50 times: every query head loads those of its kv head."));
}

TEST_CASE("the papers' orders take Nq and Nk where they differ, and are left out for one query") {
  CHECK(has(report_of("--seqlen 1k"), "Paper N d + N^2 = "));
  const std::string wide = report_of("--seqlen-q 128 --seqlen-kv 8k");
  CHECK(has(wide, "Paper Nq Nk + (Nq + Nk) d = 2.11 M elements; Nq Nk d^2/M"));
  CHECK(has(wide, "the paper has one N"));
  const std::string one = report_of("--pass decode --seqlen 8k");
  CHECK(has(one, "Paper - (its orders are of N queries on N keys"));
  CHECK_FALSE(has(one, "N^2 ="));
}

TEST_CASE("a note has words, and only algorithms that run in clusters say so") {
  for (const char* arguments :
       {"--algorithm flash_v2 --kv-lengths 0", "--algorithm flash_v2 --kv-lengths 0 --l2 none"}) {
    const std::string report = report_of(arguments);
    CHECK_FALSE(has(report, ": ;"));
    CHECK_FALSE(has(report, "flash_v2: ."));
  }
  const std::string four = report_of("--algorithm naive,flash_v1,flash_v2,split_kv --cluster 2 --seqlen 512");
  CHECK(has(four, "flash_v2: clusters of 2 CTAs"));
  for (const char* without : {"naive: clusters", "flash_v1: clusters", "split_kv: clusters"})
    CHECK_FALSE(has(four, without));
  CHECK(has(four, "Q outer, 2 x 128 x 128"));
  const std::string explained = report_of("--algorithm flash_v3 --seqlen 8k --explain");
  CHECK(has(explained, "2 ceil(Nq/(C Br)) Nk d e"));
}

TEST_CASE("a tolerance that any output would meet is said to say little") {
  const auto says_little = [](const std::string& arguments) {
    return has(run_program(words("run --algorithm " + arguments)).out, "is above the");
  };
  CHECK(says_little("naive,flash_v2 --dtype fp8 --seqlen 4k"));
  CHECK(says_little("flash_v2,naive --dtype fp8 --seqlen 4k"));
  CHECK_FALSE(says_little("flash_v2,naive --dtype fp8 --seqlen 64"));
  CHECK_FALSE(says_little("naive --dtype fp8 --seqlen 64"));
  CHECK_FALSE(says_little("naive,flash_v2 --dtype bf16 --seqlen 4k"));
}

TEST_CASE("fp8: a note says what flash is where no kernel takes the shape, and that rungs are of bf16") {
  CHECK(has(report_of("--dtype fp8 --gpu a100 --algorithm flash"), "though no kernel here takes it"));
  CHECK(has(report_of("--dtype fp8 --gpu h200 --head-dim 72 --algorithm flash"), "though no kernel here takes it"));
  CHECK(has(report_of("--dtype fp8 --gpu h200 --algorithm flash"), "the fastest of the kernels here"));
  CHECK(has(report_of("--dtype bf16 --gpu h200 --head-dim 72 --algorithm flash"), "the fastest of the kernels here"));
  CHECK(has(run_program(words("run --seqlen 64 --dtype fp8 --gpu h200 --algorithm flash_v3 --rungs")).out,
            "run in bf16 alone"));
}

TEST_CASE("what would take too long or too much memory to simulate is left out, and the run says so") {
  const std::string small = "--algorithm naive --seqlen 16 --head-dim 4096 --dtype fp8 --gemm-tile 16,1 --heads ";
  CHECK(has(report_of(small + "1000"), "s on one slow core, more than the 15 s that are taken"));
  CHECK(has(report_of(small + "200 --l2 1GiB"), "GiB, more than the 2 GiB that are taken"));
}

TEST_CASE("the step's factors have two decimals as long as these say something, and an exponent beyond") {
  const auto step = [](const std::string& arguments) {
    return report_of("--seqlen 64 --attention-share " + arguments);
  };
  CHECK(has(step("0.3 --attention-speedup 2"),
            "attention 2.00x faster (given): the step gets 1.18x faster, at most 1.43x"));
  CHECK(has(step("1 --attention-speedup 1e6"),
            "attention 1.0e+06x faster (given): the step gets 1.0e+06x faster, no limit"));
  CHECK(has(step("1 --attention-speedup 1e-6"), "attention 1.0e-06x faster (given): the step gets 1.0e-06x faster"));
  CHECK(has(step("0.9999999999999999 --attention-time-saved 0.9999999999999999"), "at most 9.0e+15x"));
}

TEST_CASE("a kernel that the GPU cannot run is predicted with a warning, in text and JSON") {
  for (const char* arguments : {"--gpu a100 --algorithm flash_v3", "--gpu t4 --algorithm naive,flash_v3 --dtype fp16",
                                "--gpu a100 --algorithm flash_v2 --cluster 2", "--gpu b200 --algorithm flash_v3"}) {
    CAPTURE(arguments);
    const std::string run = std::string("--seqlen 1k ") + arguments;
    CHECK(has(report_of(run), "cannot run it, and its figures are a thought experiment"));
    const Outcome document = run_program(words("run --engine model --json - " + run));
    CHECK(has(nlohmann::json::parse(document.out)["warnings"].dump(), "cannot run it"));
  }
  CHECK_FALSE(has(report_of("--algorithm flash_v3 --seqlen 1k --gpu h200"), "cannot run it"));
}
