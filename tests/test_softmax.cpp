#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "cli/softmax_text.hpp"
#include "core/error.hpp"
#include "model/online_softmax.hpp"
#include "report/softmax_report.hpp"

using namespace hbmscope;
using doctest::Approx;

namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

SoftmaxReport report_of(const char* scores, const char* values, Precision precision = std::nullopt) {
  const SoftmaxInput input = parse_softmax(scores, values);
  return {input, precision, online_softmax(input, precision), online_softmax(input, std::nullopt)};
}

std::string text_of(const SoftmaxReport& report) {
  return to_text(softmax_document(report), 100, false);
}

/// "message | hint" of the Error that these options end in.
std::string complaint(const char* scores, const char* values, Precision precision = std::nullopt) {
  try {
    (void)online_softmax(parse_softmax(scores, values), precision);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what() + (" | " + error.hint());
  }
  return "";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("scores 2, 1 and 3, 0 with values 1 to 4, step by step") {
  const double e1 = std::exp(-1), e3 = std::exp(-3);
  const SoftmaxResult r = report_of("2,1|3,0", "1,2,3,4").result;
  REQUIRE(r.unnormalised.size() == 2);
  CHECK(r.unnormalised[0].m == 2);
  CHECK(r.unnormalised[0].rescale == 0);  // nothing stood before
  CHECK(r.unnormalised[0].l == Approx(1 + e1).epsilon(1e-15));
  CHECK(r.unnormalised[0].o[0] == Approx(1 + 2 * e1).epsilon(1e-15));
  CHECK(r.unnormalised[1].m == 3);
  CHECK(r.unnormalised[1].rescale == Approx(e1).epsilon(1e-15));
  CHECK(r.unnormalised[1].l == Approx((1 + e1) * e1 + 1 + e3).epsilon(1e-15));
  CHECK(r.unnormalised[1].o[0] == Approx((1 + 2 * e1) * e1 + 3 + 4 * e3).epsilon(1e-15));

  const double exact =
      (std::exp(2) * 1 + std::exp(1) * 2 + std::exp(3) * 3 + 4) / (std::exp(2) + std::exp(1) + std::exp(3) + 1);
  CHECK(r.o_unnormalised[0] == Approx(exact).epsilon(1e-15));
  CHECK(r.normalised[1].merged.o[0] == Approx(exact).epsilon(1e-15));
  CHECK(r.plain.o[0] == Approx(exact).epsilon(1e-15));
  CHECK(r.lse == Approx(std::log(std::exp(2) + std::exp(1) + std::exp(3) + 1)).epsilon(1e-15));
  CHECK(r.plain.lse == Approx(r.lse).epsilon(1e-15));
}

TEST_CASE("blocks that are not merged have probabilities that sum to their number, and a wrong o") {
  const SoftmaxResult r = report_of("2,1|3,0", "1,2,3,4").result;
  const double e1 = std::exp(-1), e3 = std::exp(-3);
  CHECK(r.o_unmerged[0] == Approx((1 + 2 * e1) / (1 + e1) + (3 + 4 * e3) / (1 + e3)).epsilon(1e-15));
  CHECK(r.unmerged_probability_sum == 2);
  CHECK(report_of("1|2|3|-inf", "1,2,3,4").result.unmerged_probability_sum == 3);
}

TEST_CASE("the text shows 1.368, 1.553 and 2.471, and 4.316 as the wrong one") {
  const std::string text = text_of(report_of("2,1|3,0", "1,2,3,4"));
  for (const char* shown : {"o = 2.471", "1.368", "1.553", "3.838 / 1.553 = 2.471", "WRONG: blocks not merged", "4.316",
                            "sum to 2, not to 1"}) {
    CAPTURE(shown);
    CHECK(contains(text, shown));
  }
  CHECK_FALSE(contains(text, "\x1b"));
  CHECK(contains(to_markdown(softmax_document(report_of("2,1|3,0", "1,2,3,4"))),
                 "| 2 | 3, 0 | 3.000 | 0.368 | 1.553 | 3.838 |"));
}

TEST_CASE("any way to cut the same scores into blocks gives the plain softmax, both ways") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(-30, 30);
  for (int trial = 0; trial < 300; ++trial) {
    SoftmaxInput input;
    const int num_scores = 1 + static_cast<int>(random() % 20);
    for (int i = 0; i < num_scores; ++i) {
      if (i == 0 || random() % 3 == 0) input.blocks.emplace_back();
      input.blocks.back().push_back(random() % 4 == 0 ? kMasked : uniform(random));
      input.values.push_back({uniform(random), uniform(random)});
    }
    const SoftmaxResult r = online_softmax(input, std::nullopt);
    for (std::size_t c = 0; c < 2; ++c) {
      CHECK(r.o_unnormalised[c] == Approx(r.plain.o[c]).epsilon(1e-12));
      CHECK(r.normalised.back().merged.o[c] == Approx(r.plain.o[c]).epsilon(1e-12));
    }
    if (std::isfinite(r.lse)) {
      CHECK(r.lse == Approx(r.plain.lse).epsilon(1e-14));
      const NormalisedStep& last = r.normalised.back();
      CHECK(last.merged.lse == Approx(r.plain.lse).epsilon(1e-14));
      CHECK(last.weight_before + last.weight_block == Approx(1).epsilon(1e-14));
    } else {
      CHECK(r.plain.lse == kMasked);
    }
  }
}

TEST_CASE("scores far beyond exp's range are fine, as only differences from the maximum are raised") {
  const SoftmaxResult r = report_of("1000,999|-5000,1001", "1,2,3,4").result;
  const double e1 = std::exp(-1), e2 = std::exp(-2);
  CHECK(r.o_unnormalised[0] == Approx((e1 + 2 * e2 + 4) / (e1 + e2 + 1)).epsilon(1e-14));
  CHECK(report_of("1e308|-1e308", "7,9").result.o_unnormalised[0] == 7);
}

TEST_CASE("with every score masked l and o are 0 and LSE is -inf, without a NaN anywhere") {
  const SoftmaxReport report = report_of("-inf,-inf|-inf", "1,2,3");
  const SoftmaxResult& r = report.result;
  CHECK(r.unnormalised.back().l == 0);
  CHECK(r.o_unnormalised[0] == 0);
  CHECK(r.normalised.back().merged.o[0] == 0);
  CHECK(r.plain.o[0] == 0);
  CHECK(r.lse == kMasked);
  CHECK(r.normalised.back().merged.lse == kMasked);
  CHECK_FALSE(contains(text_of(report), "nan"));
  const auto json = softmax_to_json(report, {});
  CHECK(json["unnormalised"]["lse"].is_null());
  CHECK(json["reason"].is_string());
  CHECK_FALSE(contains(softmax_to_csv(report), "nan"));
}

TEST_CASE("a masked block before, between or after live ones changes nothing") {
  const double o = report_of("2,1|3,0", "1,2,3,4").result.o_unnormalised[0];
  for (const auto& [scores, values] : {std::pair{"-inf|2,1|3,0", "9,1,2,3,4"}, std::pair{"2,1|-inf|3,0", "1,2,9,3,4"},
                                       std::pair{"2,1|3,-inf,0|-inf", "1,2,3,9,4,9"}}) {
    const SoftmaxResult r = report_of(scores, values).result;
    CHECK(r.o_unnormalised[0] == Approx(o).epsilon(1e-15));
    CHECK(r.normalised.back().merged.o[0] == Approx(o).epsilon(1e-15));
  }
}

TEST_CASE("rows of a vector are averaged column by column") {
  const SoftmaxResult r = report_of("0,0|0,0", "1,10;2,20;3,30;4,40").result;
  CHECK(r.o_unnormalised == Vector{2.5, 25});
  CHECK(r.plain.o == Vector{2.5, 25});
  CHECK(contains(text_of(report_of("0,0|0,0", "1,10;2,20;3,30;4,40")), "(2.500, 25.000)"));
}

TEST_CASE("a dtype rounds after every operation") {
  // e^-1 = 0.367879...: the neighbours in bf16 are 0.3671875 and 0.369140625.
  const SoftmaxResult r = report_of("2,1|3,0", "1,2,3,4", Dtype::bf16).result;
  CHECK(r.unnormalised[0].l == 1.3671875);
  CHECK(r.unnormalised[0].o[0] == 1.734375);
  CHECK(report_of("2,1|3,0", "1,2,3,4", Dtype::fp32).result.o_unnormalised[0] == Approx(2.4709).epsilon(1e-4));
  // Past 256 bf16 no longer counts by ones: 300 equal scores give l = 256.
  std::string scores = "0", values = "1";
  for (int i = 1; i < 300; ++i) {
    scores += ",0";
    values += ",1";
  }
  CHECK(report_of(scores.c_str(), values.c_str(), Dtype::bf16).result.unnormalised[0].l == 256);
  CHECK(report_of("0,-inf", "1,2", Dtype::fp8).result.o_unnormalised[0] == 1);  // fp8 has no infinity, but a mask masks
  const std::string text = text_of(report_of("2,1|3,0", "1,2,3,4", Dtype::bf16));
  CHECK(contains(text, "every result rounded to bf16"));
  CHECK(contains(text, "o, fp64"));
}

TEST_CASE("JSON is unrounded, CSV has as many cells in each row") {
  const SoftmaxReport report = report_of("2,1|3,0", "1,2,3,4");
  const auto json = softmax_to_json(report, {"hbmscope", "softmax"});
  CHECK(json["unnormalised"]["o"].get<double>() == report.result.o_unnormalised[0]);
  CHECK(json["unnormalised"]["steps"][1]["l"].get<double>() == report.result.unnormalised[1].l);
  CHECK(json["normalised"]["steps"][0]["merged"]["lse"].get<double>() == report.result.normalised[0].merged.lse);
  CHECK(json["unmerged"]["probability_sum"] == 2);
  CHECK(json["meta"]["argv"].size() == 2);
  CHECK(json["reason"].is_null());
  for (const SoftmaxReport& one : {report, report_of("2|3", "1,2;3,4")}) {
    const std::string csv = softmax_to_csv(one);
    const auto cells = std::count(csv.begin(), csv.begin() + static_cast<std::ptrdiff_t>(csv.find('\n')), ',');
    for (std::size_t at = 0; at < csv.size();) {
      const std::size_t end = csv.find('\n', at);
      const std::string row = csv.substr(at, end - at);
      CAPTURE(row);
      CHECK(std::count(row.begin(), row.end(), ',') == cells);
      at = end + 1;
    }
  }
}

TEST_CASE("tables stay within 100 columns") {
  for (const SoftmaxReport& report :
       {report_of("2,1|3,0", "1,2,3,4"), report_of("123456.789,1|3,0", "-99999.5,2,3,4"),
        report_of("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16|1", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17")}) {
    const std::string text = text_of(report);
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
      CAPTURE(text.substr(at, text.find('\n', at) - at));
      CHECK(text.find('\n', at) - at <= 100);
    }
  }
}

TEST_CASE("bad input is refused in a sentence with a hint") {
  CHECK(complaint("2,1||3", "1,2,3") ==
        "--scores: a block is empty | write blocks of at least one score, such as \"2,1|3,0\"");
  CHECK(complaint("", "1").starts_with("--scores: a block is empty"));
  CHECK(complaint("2,1|3,0", "1,2,3").starts_with("--values: needs one value for each of the 4 scores, got 3 | "));
  CHECK(complaint("2,5|1", "1,2").find("'.' as the decimal point") != std::string::npos);
  CHECK(complaint("2,x", "1,2").starts_with("--scores: needs a number, got \"x\" | "));
  CHECK(complaint("2,,1", "1,2,3").starts_with("--scores: needs a number, but the text is empty"));
  CHECK(complaint("nan", "1").starts_with("--scores: needs a finite number, got \"nan\""));
  CHECK(complaint("inf", "1").starts_with("--scores: needs a finite number"));
  CHECK(complaint("1", "-inf").starts_with("--values: needs a finite number"));
  CHECK(complaint("1,1", "1,2;3").starts_with("--values: all rows must have the same number of values"));
  CHECK(complaint("1", "1,2,3,4;").starts_with("--values: "));
  CHECK(complaint("1|2", "1,2,3;1,2,3").starts_with("--values: a row holds at most 2 numbers, got 3"));
  CHECK(complaint("1|2", "70000,1", Dtype::fp16) ==
        "--values: a number leaves the range of fp16 | take smaller numbers or a wider --dtype");
  CHECK(complaint("500", "1", Dtype::fp8).starts_with("--scores: a number leaves the range of fp8"));
  CHECK(complaint("0,0", "60000,60000", Dtype::fp16)
            .starts_with("--values: a sum of these values leaves the range of fp16"));
  CHECK(complaint("0,0", "1e308,1e308").starts_with("--values: a sum of these values leaves the range of fp64"));
  CHECK(complaint(" 2 , 1 | 3 , -inf ", "1, 2, 3, 4") == "");
}
