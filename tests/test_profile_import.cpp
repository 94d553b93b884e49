// Counters of other people's kernels beside the prediction.
#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "analysis/profile_import.hpp"
#include "profile_cases.hpp"
#include "report/profile_report.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

namespace {

const ComparisonRow& row_against(const LaunchComparison& c, Boundary predicted) {
  const auto found =
      std::find_if(c.rows.begin(), c.rows.end(), [&](const ComparisonRow& row) { return row.predicted == predicted; });
  REQUIRE(found != c.rows.end());
  return *found;
}

std::optional<Bytes> difference(const LaunchComparison& c, DifferenceKind kind, bool write) {
  for (const Difference& d : c.differences) {
    if (d.kind == kind && d.write == write) return d.bytes;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("FlashAttention-2: bytes that its SMs receive agree with the closed form, what it stores shows spills") {
  const ProfileImport p = import_file(kFa2, beside("flash_v2", shape_of(1, kHeads, kN, kD), tiles(128, 64)));
  REQUIRE(p.comparisons.size() == 1);
  const LaunchComparison& c = p.comparisons[0];
  CHECK(c.stage == "fused");
  CHECK(p.launches[0].stage == "fused");

  const ComparisonRow& sm = row_against(c, Boundary::sm_l2);
  CHECK(sm.counted == Boundary::sm_l2);
  CHECK(sm.provenance == Provenance::closed_form);
  CHECK(sm.bytes->read == Bytes(kFlashReads));
  CHECK(sm.bytes->write == Bytes(kOutput + kLse));
  CHECK(*c.sm.write.bytes == Bytes(15'327'232LL * 32));
  CHECK_FALSE(c.sm.read.bytes);  // the file has no xbar counter, and L2 lookups do not stand in for it
  CHECK_FALSE(sm.read_ratio);
  CHECK_FALSE(sm.total_ratio);
  CHECK(*sm.write_ratio == doctest::Approx(15'327'232.0 * 32 / (kOutput + kLse)));
  CHECK(difference(c, DifferenceKind::spills, true) == Bytes(15'327'232LL * 32 - kOutput - kLse));

  const ComparisonRow& least = row_against(c, Boundary::compulsory);
  CHECK(least.counted == Boundary::l2_hbm);
  CHECK(*least.read_ratio == doctest::Approx(51'501'824.0 / (3 * kOutput)));
  CHECK(difference(c, DifferenceKind::tile_reread, false) == Bytes(51'501'824 - 3 * kOutput));
  CHECK(difference(c, DifferenceKind::l2_absorbed, false) == Bytes(kFlashReads - 51'501'824));
  CHECK(difference(c, DifferenceKind::l2_absorbed, true) == Bytes(15'327'232LL * 32 - 22'656'000));
  CHECK(difference(c, DifferenceKind::spilled_lines, true) == Bytes(22'656'000 - kOutput - kLse));

  const ComparisonRow& hbm = row_against(c, Boundary::l2_hbm);
  CHECK(hbm.provenance == Provenance::simulated);
  CHECK(*hbm.read_ratio == doctest::Approx(1).epsilon(0.1));
  REQUIRE(hbm.least_total);
  CHECK(*hbm.least_total <= hbm.bytes->total());
  CHECK(hbm.bytes->total() <= *hbm.most_total);
  CHECK(p.time->value == 781'600e-9);
}

TEST_CASE("with the bytes that SMs receive in the file, they stand within 0.15 % of the closed form") {
  // The figure that was read in another run of the same kernel and shape; 10 kB is its last digit.
  const std::string text = with_metric(real_file(kFa2), "l1tex__m_xbar2l1tex_read_bytes.sum", "Mbyte", "2,164.28");
  const ProfileImport p = import_text(text, beside("flash_v2", shape_of(1, kHeads, kN, kD), tiles(128, 64)));
  const LaunchComparison& c = p.comparisons[0];
  CHECK(*c.sm.read.bytes == Bytes(2'164'280'000));
  CHECK(c.sm.read.step == 10'000);
  const ComparisonRow& sm = row_against(c, Boundary::sm_l2);
  CHECK(*sm.read_ratio == doctest::Approx(1).epsilon(0.0015));
  CHECK(*sm.total_ratio > 1.2);  // spills
  CHECK_FALSE(difference(c, DifferenceKind::more_tile_loads, false));
  CHECK_FALSE(difference(c, DifferenceKind::fewer_tile_loads, false));
  CHECK(difference(c, DifferenceKind::l2_absorbed, false) == Bytes(2'164'280'000 - 51'501'824));
  // With another tile the same counters do not fit, and that is said.
  const ProfileImport wrong = import_text(text, beside("flash_v2", shape_of(1, kHeads, kN, kD), tiles(64, 64)));
  CHECK(difference(wrong.comparisons[0], DifferenceKind::fewer_tile_loads, false));
  const ProfileImport short_shape = import_text(text, beside("flash_v2", shape_of(1, 4, kN, kD), tiles(128, 64)));
  CHECK(difference(short_shape.comparisons[0], DifferenceKind::more_tile_loads, false));
}

TEST_CASE("cuDNN stores O and no LSE, and reads from HBM each byte once") {
  struct Case {
    const char* file;
    std::int64_t heads, seqlen;
    Mask mask;
    Engine engine;
  };
  for (const Case& of : {Case{kCudnn, 8, 8192, Mask::none(), Engine::sim},
                         Case{"cudnn_1_64_16384_128_noflush.csv", 64, 16384, Mask::none(), Engine::model},
                         Case{"cudnn_causal_1_32_4096_128_noflush.csv", 32, 4096, Mask::causal(), Engine::sim}}) {
    CAPTURE(of.file);
    const ProfileImport p = import_file(
        of.file, beside("flash_v2", shape_of(1, of.heads, of.seqlen, 128, of.mask), tiles(128, 128), of.engine));
    const LaunchComparison& c = p.comparisons.at(0);
    const std::int64_t output = of.heads * of.seqlen * 128 * 2;
    CHECK(*c.sm.write.bytes == Bytes(output));
    CHECK(difference(c, DifferenceKind::statistics_not_stored, true) == Bytes(of.heads * of.seqlen * 4));
    CHECK_FALSE(difference(c, DifferenceKind::spills, true));
    CHECK(*row_against(c, Boundary::compulsory).read_ratio == doctest::Approx(1).epsilon(0.01));
    CHECK_FALSE(difference(c, DifferenceKind::tile_reread, false));
    // Somebody else's dirty lines come out too, but less than the L2 holds.
    CHECK(difference(c, DifferenceKind::earlier_dirty_lines, true).value_or(Bytes(0)) > Bytes(0));
    CHECK(difference(c, DifferenceKind::earlier_dirty_lines, true) < Bytes(60 * 1024 * 1024));
    if (of.engine == Engine::sim)
      CHECK(*row_against(c, Boundary::l2_hbm).read_ratio == doctest::Approx(1).epsilon(0.1));
    const bool simulated = std::any_of(c.rows.begin(), c.rows.end(),
                                       [](const ComparisonRow& row) { return row.predicted == Boundary::l2_hbm; });
    CHECK(simulated == (of.engine == Engine::sim));
  }
}

TEST_CASE("three launches are naive's kernels in order, each beside its own stage and all beside the whole") {
  const std::int64_t square = 32LL * 4096 * 4096 * 2, thin = 32LL * 4096 * 128 * 2;
  const ProfileImport p = import_file(kNaive, beside("naive", shape_of(1, 32, 4096, 128)));
  REQUIRE(p.comparisons.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string_view stage = std::vector<std::string_view>{"qk", "softmax", "pv"}[i];
    CHECK(p.comparisons[i].stage == stage);
    CHECK(p.launches[i].stage == stage);
    CHECK(p.comparisons[i].launches == std::vector<std::size_t>{i});
  }
  const LaunchComparison &qk = p.comparisons[0], &softmax = p.comparisons[1], &pv = p.comparisons[2],
                         &all = p.comparisons[3];
  CHECK(*row_against(qk, Boundary::sm_l2).write_ratio == 1);
  CHECK(*row_against(softmax, Boundary::sm_l2).write_ratio == 1);
  CHECK(*row_against(pv, Boundary::sm_l2).write_ratio == 1);
  CHECK(*qk.sm.write.bytes == Bytes(square));
  CHECK(*pv.sm.write.bytes == Bytes(thin));
  for (const LaunchComparison* c : {&qk, &softmax, &pv, &all}) {
    CAPTURE(c->stage);
    CHECK(*row_against(*c, Boundary::l2_hbm).read_ratio == doctest::Approx(1).epsilon(0.03));
  }
  // S is still in L2, in part, when the first kernel ends; the last one sees others' dirty lines.
  CHECK(difference(qk, DifferenceKind::write_back_lag, true) == Bytes(square - 1'054'189'568));
  CHECK(difference(softmax, DifferenceKind::earlier_dirty_lines, true) == Bytes(1'081'462'528 - square));
  CHECK(difference(pv, DifferenceKind::earlier_dirty_lines, true) == Bytes(47'603'456 - thin));
  CHECK(difference(qk, DifferenceKind::tile_reread, false) == Bytes(68'684'544 - 2 * thin));
  CHECK_FALSE(difference(softmax, DifferenceKind::tile_reread, false));

  CHECK(all.stage == "all");
  CHECK(all.launches == std::vector<std::size_t>{0, 1, 2});
  CHECK(*all.hbm.read.bytes == Bytes(68'684'544LL + 1'073'871'872 + 1'117'897'472));
  CHECK(*all.hbm.write.bytes == Bytes(1'054'189'568LL + 1'081'462'528 + 47'603'456));
  CHECK(*all.sm.write.bytes == Bytes(2 * square + thin));
  CHECK(p.time->value == doctest::Approx((340'032 + 1'840'288 + 287'552) * 1e-9));
  CHECK(*row_against(all, Boundary::compulsory).total_ratio > 30);
}

TEST_CASE("naive with operands once, a floor that no tiled product reaches, stands beside no counter") {
  const AttentionShape shape = shape_of(1, 32, 4096, 128);
  const ProfileImport p = import_file(kNaive, beside("naive", shape));
  TilePlan once, tiled;
  tiled.gemm_tile = {128, 128};
  const auto stages_of = [&](const TilePlan& plan) { return algorithm("naive").closed_form(shape, plan); };
  for (std::size_t i = 0; i < 3; ++i) {
    const ComparisonRow& sm = row_against(p.comparisons[i], Boundary::sm_l2);
    CHECK(sm.bytes->read == stages_of(tiled)[i].traffic.sum().read);
    if (i != 1) CHECK(sm.bytes->read != stages_of(once)[i].traffic.sum().read);
  }
  for (const ComparisonRow& row : p.comparisons[3].rows) CHECK(row.bytes->total() != total(stages_of(once)).total());
}

TEST_CASE("the other naive file: 1024 heads of N = 1024, d = 64") {
  const ProfileImport p = import_file("naive_64_16_1024_64_noflush.csv", beside("naive", shape_of(64, 16, 1024, 64)));
  REQUIRE(p.comparisons.size() == 4);
  for (const LaunchComparison& c : p.comparisons) {
    CAPTURE(c.stage);
    CHECK(*row_against(c, Boundary::sm_l2).write_ratio == 1);
    CHECK(*row_against(c, Boundary::l2_hbm).read_ratio == doctest::Approx(1).epsilon(0.02));
    CHECK(*row_against(c, Boundary::l2_hbm).total_ratio == doctest::Approx(1).epsilon(0.02));
  }
}

TEST_CASE("launches that are not the algorithm's kernels are refused, with what there is") {
  const AttentionShape shape = shape_of(1, 32, 4096, 128);
  const Refusal one = refusal([&] { (void)import_file(kFa2, beside("naive", shape)); });
  CHECK(one.kind == ErrorKind::usage);
  CHECK(one.what == "--algorithm: naive is 3 kernels (qk, softmax, pv), and 1 launch is selected");
  CHECK(has(one.hint, "flash_fwd_kernel"));
  const Refusal two = refusal([&] { (void)import_file(kNaive, beside("naive", shape), "nvjet"); });
  CHECK(has(two.what, "and 2 launches are selected"));
  const Refusal mixed = refusal([&] { (void)import_file(kNaive, beside("flash_v2", shape)); });
  CHECK(mixed.kind == ErrorKind::usage);
  CHECK(has(mixed.what, "flash_v2 is one kernel, and the 3 launches that are selected are of different ones"));
  RunRequest both = beside("naive", shape);
  both.algorithms.emplace_back("flash_v2");
  CHECK(has(refusal([&] { (void)import_file(kNaive, both); }).what, "one algorithm at a time"));
  TilePlan more;
  more.scale_pass = true;
  CHECK(has(refusal([&] { (void)import_file(kNaive, beside("naive", shape, more)); }).what,
            "naive is 4 kernels (qk, scale, softmax, pv), and 3 launches are selected"));
}

TEST_CASE("a kernel that ran several times is compared launch by launch, and its time is the median") {
  std::string text = real_file(kFa2);
  const std::string rows = text.substr(text.find("\n\"0\"") + 1);
  for (const char* id : {"1", "2"}) {
    std::string again = rows;
    for (std::size_t at = 0; (at = again.find("\"0\",\"914\"", at)) != std::string::npos; ++at)
      again.replace(at, 3, std::string("\"") + id + "\"");
    const std::size_t time = again.find("781,600");
    again.replace(time, 7, std::string(id) == "1" ? "781,800" : "790,000");
    text += again;
  }
  const ProfileImport p = import_text(text, beside("flash_v2", shape_of(1, kHeads, kN, kD), tiles(128, 64)));
  REQUIRE(p.comparisons.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(p.comparisons[i].launches == std::vector<std::size_t>{i});
  CHECK(p.time->value == doctest::Approx(781'800e-9));
  const auto result = profile_to_json(p, {});
  CHECK(result["algorithms"][0]["time"]["samples_s"].size() == 3);
  CHECK(result["algorithms"][0]["time"]["measured_median_s"] == doctest::Approx(781'800e-9));
}

TEST_CASE("--kernel takes a regular expression, and says what there is when it matches nothing") {
  CHECK(import_file(kNaive).launches.size() == 3);
  CHECK(import_file(kNaive, {}, "nvjet").launches.size() == 2);
  CHECK(import_file(kNaive, {}, "^nvjet.*(TNT|NNN)$").launches.size() == 2);
  CHECK(import_file(kNaive, {}, "SoftMax").launches[0].kernel.id == 1);
  const Refusal none = refusal([] { (void)import_file(kNaive, {}, "flash"); });
  CHECK(none.kind == ErrorKind::usage);
  CHECK(none.what == "--kernel: \"flash\" matches no kernel of the file");
  CHECK(has(none.hint, "nvjet_sm90_tst_256x128"));
  for (const char* bad : {"(", "[a", "a{2", "*", "\\"}) {
    CAPTURE(bad);
    const Refusal said = refusal([&] { (void)import_file(kNaive, {}, bad); });
    CHECK(said.kind == ErrorKind::usage);
    CHECK(has(said.what, "is no regular expression"));
  }
  for (const char* other : {"\\d", "(?:a)", "(a)\\1", "a|*", "((a{100}){100}){100}", "a{999999999999}"}) {
    CAPTURE(other);
    CHECK(refusal([&] { (void)import_file(kNaive, {}, other); }).kind == ErrorKind::usage);
  }
  CHECK(import_file(kNaive, {}, "nvjet_sm90_[^]x]*[0-9]{3}x").launches.size() == 2);
  CHECK(has(refusal([] { (void)import_file(kNaive, {}, std::string(20'000, '(')); }).what, "20000 characters"));
  CHECK(has(refusal([] { (void)import_file(kNaive, {}, std::string(256, '(')); }).what, "no regular expression"));
  // A name as long as templates make them must not end the stack, nor take a backtracker's time.
  const std::string header = "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
  const std::string row = "\"0\",\"" + std::string(1'000'000, 'x') + "\",\"dram__bytes_read.sum\",\"byte\",\"1\"\n";
  for (const char* slow : {"(a|x)*y", "(x|x)*b", "(x+)+(x+)+b", "((x*)*)*b", "(x|x|x){200}b", "(.*){20}.*b"}) {
    CAPTURE(slow);
    const std::clock_t begin = std::clock();
    CHECK(refusal([&] { (void)import_text(header + row, {}, slow); }).kind == ErrorKind::usage);
    CHECK(std::clock() - begin < CLOCKS_PER_SEC);
  }
  CHECK(import_text(header + row, {}, "x").launches.size() == 1);
}

TEST_CASE("an unusable number matters only where a selected kernel needs it") {
  std::string text = real_file(kNaive);
  const std::size_t at = text.find("1,073,871,872");
  text.replace(at, 13, "n/a");
  const Refusal said = refusal([&] { (void)import_text(text); });
  CHECK(said.kind == ErrorKind::data);
  CHECK(has(said.what, "file.csv: line 10: kernel \"void at::<unnamed>::cunn_SoftMaxForwardReg"));
  CHECK(has(said.what, "metric dram__bytes_read.sum: has no value: \"n/a\""));
  CHECK(import_text(text, {}, "nvjet").launches.size() == 2);
  const std::string unneeded = with_metric(real_file(kFa2), "sm__throughput.avg", "%", "(!) nan");
  const auto result = profile_to_json(import_text(unneeded), {});
  CHECK(result["launches"][0]["metrics"]["sm__throughput.avg"]["value"].is_null());
  CHECK(has(result["launches"][0]["metrics"]["sm__throughput.avg"]["reason"], "nan"));
}

TEST_CASE("warnings: a last launch that is cut short, another GPU than the prediction's, a GPU that nobody named") {
  std::string text = real_file(kNaive);
  CHECK(import_text(text).warnings.empty());
  text.resize(text.rfind("\n\"2\"") + 1);
  const ProfileImport cut = import_text(text);
  REQUIRE(cut.warnings.size() == 1);
  CHECK(has(cut.warnings[0], "lacks 1 metric that all others have: was the file cut short?"));

  RunRequest a100 = beside("flash_v2", shape_of(1, kHeads, kN, kD), tiles(128, 64), Engine::model);
  a100.gpu = embedded_gpu("A100 SXM 80GB");
  const ProfileImport other = import_file(kFa2, a100);
  REQUIRE(other.warnings.size() == 1);
  CHECK(has(other.warnings[0], "ran on compute capability 9.0, and the prediction is for A100 SXM 80GB"));

  RunRequest assumed = beside("flash_v2", shape_of(1, kHeads, kN, kD), tiles(128, 64), Engine::model);
  assumed.gpu_assumed = true;
  CHECK(has(import_file(kFa2, assumed).warnings.at(0), "nobody named the GPU that was profiled"));
}
