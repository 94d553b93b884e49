// What lessons compute: numbers with units, paths into results, and how a value is written.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>

#include "core/error.hpp"
#include "lesson/pattern.hpp"
#include "lesson/value.hpp"
#include "scenario/json_reader.hpp"

using namespace hbmscope;
using namespace hbmscope::lesson;

namespace {

class SomeNames : public Names {
 public:
  SomeNames() {
    result_ = nlohmann::ordered_json::parse(R"({
      "shape": {"seqlen_q": 8192, "live_pairs": 9007199254740993},
      "gpu": {"hbm_bandwidth_bytes_per_s": 3.35e12, "peak_flop_per_s": {"fp16": 989.4e12, "fp8": null}, "peak_reason": "no fp8", "peak_source": "a data sheet"},
      "traffic": [{"boundary": "l2_hbm", "total_bytes": 8421376}, {"boundary": "sm_l2", "total_bytes": 272662528}],
      "time": {"predicted_s": 3.87e-05, "measured_median_s": null},
      "flops": {"matmul": 34359738368, "exp": 67108864},
      "roofline": {"intensity_flop_per_byte": 4080.0},
      "roof": {"unit": "byte_per_s", "rate": 4.0e12, "spread": 0.01},
      "file": {"l2_bytes": {"value": 62914560, "source": "s1"}, "num_sms": {"value": 132}},
      "paper": {"reduction_bytes": 5.0, "reduction_bytes_with_init": 5.1},
      "read": {"counted_bytes": 12, "counted_over_predicted": 1.5},
      "values": {"S1-01": {"total_bytes": 7}, "a b": {"unit": "byte_per_s", "rate": 2.0}},
      "unknown": {"predicted_s": null, "predicted_reason": "no peak for fp64"},
      "peers": [{"tflops": 262.8}, {"tflops": 100.0}],
      "good": true
    })");
    values_["r"] = JsonPlace{&result_, {}};
    values_["peak"] = JsonPlace{&result_["gpu"]["peak_flop_per_s"], {"gpu", "peak_flop_per_s"}};
    values_["N"] = Quantity::whole(8192);
    values_["e"] = Quantity::whole(2, {1, 0, 0});
    values_["v"] = JsonPlace{&result_["values"], {"values"}};
    values_["word"] = std::string("flash");
  }
  const Value& find(std::string_view name) override {
    if (name == "broken") throw DefinitionFailed{};
    const auto found = values_.find(name);
    if (found == values_.end()) throw Error(ErrorKind::data, "no name " + std::string(name), "define it");
    return found->second;
  }

 private:
  nlohmann::ordered_json result_;
  std::map<std::string, Value, std::less<>> values_;
};

std::string shown(std::string_view expression, std::string_view pattern) {
  SomeNames names;
  return written(evaluate(expression, names), pattern);
}

Quantity number(std::string_view expression) {
  SomeNames names;
  return std::get<Quantity>(evaluate(expression, names));
}

/// The message and the hint of what `expression` throws.
std::string complaint(std::string_view expression, std::string_view pattern = "auto") {
  try {
    return "no error: " + shown(expression, pattern);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(!error.hint().empty());
    return std::string(error.what()) + " / " + error.hint();
  }
}

bool complains(std::string_view expression, std::string_view part, std::string_view pattern = "auto") {
  const std::string said = complaint(expression, pattern);
  CAPTURE(said);
  return said.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("arithmetic binds as on paper") {
  CHECK(number("2 + 3 * 4").real() == 14);
  CHECK(number("(2 + 3) * 4").real() == 20);
  CHECK(number("2 - 3 - 4").real() == -5);
  CHECK(number("64 / 4 / 2").real() == 8);
  CHECK(number("2 ^ 3 ^ 2").real() == 512);
  CHECK(number("-2 ^ 2").real() == -4);
  CHECK(number("2 ^ -1").real() == 0.5);
  CHECK(number("2*-3").real() == -6);
  CHECK(number(" 1.5e3\t").real() == 1500);
}

TEST_CASE("a length may be written with k, M and G, which are steps of 1024") {
  CHECK(number("8k").exact() == 8192);
  CHECK(number("1.5k").real() == 1536);
  CHECK(number("2M").exact() == 2097152);
  CHECK(number("1G * 8").exact() == 8589934592);
  CHECK(complains("1.7k", "a whole number, and this one is not"));
}

TEST_CASE("whole numbers stay exact beyond what a double holds") {
  CHECK(shown("r.shape.live_pairs", "0,000") == "9,007,199,254,740,993");
  CHECK(shown("2 ^ 62 + 1", "0") == "4611686018427387905");
  // Beyond 64 bits in between: no longer exact, no wrap either, and no digits that nobody knows.
  CHECK(shown("(2 ^ 62 + 1) * 3 / 3", "0.0e0") == "4.6e+18");
  CHECK(complains("(2 ^ 62 + 1) * 3 / 3", "known to some 16 digits", "0"));
  CHECK(complains("1e300", "known to some 16 digits", "0,000"));
  CHECK(number("2 ^ 63").real() == 9223372036854775808.0);
  CHECK_FALSE(number("2 ^ 63").exact().has_value());
  CHECK(number("7 / 2").real() == 3.5);
  CHECK(number("0 - 2 ^ 62 - 2 ^ 62").real() == -9223372036854775808.0);
}

TEST_CASE("functions") {
  CHECK(number("sqrt(64)").exact() == 8);
  CHECK(number("ceil(8192 / 100)").exact() == 82);
  CHECK(number("floor(2.9) + round(2.5)").real() == 5);
  CHECK(number("min(3, 1, 2) + max(3, 1, 2)").real() == 4);
  CHECK(number("log2(8k)").exact() == 13);
  CHECK(number("ln(exp(1))").real() == doctest::Approx(1));
  CHECK(number("abs(2 - 5)").exact() == 3);
  // fp16 has 11 significant bits, bf16 8: above 2048 and 256 odd numbers lie half-way and go to the even neighbour.
  CHECK(number("f16(2049)").exact() == 2048);
  CHECK(number("bf16(257)").exact() == 256);
  CHECK(number("f32(16777217)").exact() == 16777216);
}

TEST_CASE("units are checked, and kept through products and quotients") {
  CHECK(number("N * N * e").dimension() == Dimension{1, 0, 0});
  CHECK(shown("N * N * e", "0 MB") == "134 MB");
  CHECK(shown("N * N * e", "0 MiB") == "128 MiB");
  CHECK(shown("3 TB/s * 2 s", "0 TB") == "6 TB");
  CHECK(shown("500 TFLOP/s / 2.5 TB/s", "0 FLOP/B") == "200 FLOP/B");
  CHECK(shown("1.5 ms + 500 us", "0.0 ms") == "2.0 ms");
  CHECK(shown("1 s / 1 ms", "0,000") == "1,000");
  CHECK(shown("sqrt((3 B)^2)", "0 B") == "3 B");
  CHECK(shown("ceil(2.5 B)", "0 B") == "3 B");
  CHECK(complains("1 B + 1 s", "cannot add B and s"));
  CHECK(complains("N - e", "cannot subtract a plain number and B"));
  CHECK(complains("N - e", "multiply it by 1 B"));
  CHECK(complains("min(1 B, 1 s)", "B and s"));
  CHECK(complains("exp(1 B)", "B"));
  CHECK(complains("sqrt(1 B)", "sqrt of B"));
  CHECK(complains("2 ^ (1 B)", "exponent"));
  CHECK(complains("(2 B) ^ 0.5", "B"));
}

TEST_CASE("a key of a result says the unit of its number") {
  CHECK(number("r.traffic[boundary=l2_hbm].total_bytes").dimension() == Dimension{1, 0, 0});
  CHECK(number("r.gpu.hbm_bandwidth_bytes_per_s").dimension() == Dimension{1, 0, -1});
  CHECK(number("r.gpu.peak_flop_per_s.fp16").dimension() == Dimension{0, 1, -1});
  CHECK(number("peak.fp16").dimension() == Dimension{0, 1, -1});
  CHECK(number("r.time.predicted_s").dimension() == Dimension{0, 0, 1});
  CHECK(number("r.flops.matmul").dimension() == Dimension{0, 1, 0});
  CHECK(number("r.roofline.intensity_flop_per_byte").dimension() == Dimension{-1, 1, 0});
  CHECK(number("r.roof.rate").dimension() == Dimension{1, 0, -1});
  CHECK(number("r.file.l2_bytes.value").dimension() == Dimension{1, 0, 0});
  CHECK(shown("r.peers[0].tflops", "0.0 TFLOP/s") == "262.8 TFLOP/s");
  CHECK(number("r.read.counted_bytes").dimension() == Dimension{1, 0, 0});
  CHECK(number("r.values[\"a b\"].rate").dimension() == Dimension{1, 0, -1});
  CHECK(number("r.values[\"a b\"][\"rate\"]").dimension() == Dimension{1, 0, -1});
  for (const char* plain :
       {"r.paper.reduction_bytes", "r.paper.reduction_bytes_with_init", "r.read.counted_over_predicted",
        "r.shape.seqlen_q", "r.flops.exp", "r.roof.spread", "r.file.num_sms.value"}) {
    CAPTURE(plain);
    CHECK(number(plain).dimension().plain());
  }
}

TEST_CASE("what a schema calls a ratio has no unit, whatever its key ends in, and counts of bytes have theirs") {
  std::size_t ratios = 0, counts = 0;
  const auto visit = [&](const auto& self, const nlohmann::json& schema) -> void {
    if (!schema.is_structured()) return;
    for (const auto& [key, member] : schema.items()) {
      self(self, member);
      if (!member.is_object() || !member.contains("$ref")) continue;
      const std::string described = member.value("description", ""), type = member["$ref"];
      CAPTURE(key);
      if (described.starts_with("A ratio")) {
        CHECK(unit_of_keys({"total_bytes", key}).dimension.plain());
        ++ratios;
      } else if (key.ends_with("_bytes") && type.find("count") != std::string::npos) {
        CHECK(unit_of_keys({key}).dimension == Dimension{1, 0, 0});
        ++counts;
      }
    }
  };
  for (const char* name : {"run", "profile"}) {
    const std::string path = std::string(HBMSCOPE_SOURCE_DIR) + "/docs/schema/" + name + ".schema.json";
    visit(visit, nlohmann::json(read_json_file(path)));
  }
  CHECK(ratios >= 4);
  CHECK(counts >= 20);
}

TEST_CASE("paths") {
  CHECK(shown("r.traffic[boundary=sm_l2].total_bytes / r.traffic[boundary=l2_hbm].total_bytes", "0x") == "32x");
  CHECK(shown("r.gpu.peak_source", "text") == "a data sheet");
  CHECK(shown("r.good", "text") == "true");
  CHECK(complains("r.traffic[boundary=l3].total_bytes", "no element of r.traffic has boundary=l3"));
  CHECK(complains("r.shape.seqlen", "r.shape has no key \"seqlen\""));
  CHECK(complains("r.shape", "an object"));
  CHECK(complains("r.time.measured_median_s", "the value is null / the result does not know it"));
  CHECK(complains("r.gpu.peak_flop_per_s.fp8 / 2", "this is null (no fp8) / "));
  CHECK(complains("r.unknown.predicted_s", "the value is null (no peak for fp64) / "));
  CHECK(complains("r.unknown.predicted_s * 2", "this is null (no peak for fp64) / "));
  CHECK(shown("v[\"S1-01\"].total_bytes + r.values[\"S1-01\"].total_bytes", "0 B") == "14 B");
  CHECK(complains("v.S1-01.total_bytes", "stands in quotes: v[\"S1-01\"]"));
  CHECK(complains("r.traffic * 2", "a list"));
  CHECK(complains("N.x", "nothing within"));
  CHECK(complains("r.", "key is missing"));
  CHECK(complains("r.traffic[0", "no ]"));
}

TEST_CASE("what is no expression says so") {
  CHECK(complains("", "missing"));
  CHECK(complains("2 +", "ends too early"));
  CHECK(complains("(2", "no )"));
  CHECK(complains("2 3", "does not know what to do with"));
  CHECK(complains("2 N", "unit \"N\""));
  CHECK(complains("8,192", "commas"));
  CHECK(complains("M", "no name M"));
  CHECK(complains("sine(2)", "no function \"sine\""));
  CHECK(complains("sqrt()", "one value"));
  CHECK(complains("sqrt(1, 2)", "one value"));
  CHECK(complains("1 / 0", "division by zero"));
  CHECK(complains("ln(0 - 1)", "finite"));
  CHECK(complains("10 ^ 400", "finite"));
  CHECK(complains("word * 2", "a text"));
  CHECK(complains("1e999", "range"));
  CHECK(complains(std::string(10000, '('), "levels"));
  CHECK(complains(std::string(10000, '-') + "1", "levels"));
  SomeNames names;
  CHECK_THROWS_AS(evaluate("broken * 2", names), DefinitionFailed);
}

TEST_CASE("a pattern shows how a value is written") {
  CHECK(shown("1234567", "0") == "1234567");
  CHECK(shown("1234567", "0,000") == "1,234,567");
  CHECK(shown("0 - 1234567", "0,000") == "-1,234,567");
  CHECK(shown("999", "0,000") == "999");
  CHECK(shown("1234.56", "0,000.0") == "1,234.6");
  CHECK(shown("2", "0.00") == "2.00");
  CHECK(shown("1 / 3", "0.000") == "0.333");
  CHECK(shown("64.6", "0x") == "65x");
  CHECK(shown("64.6", "0.0x") == "64.6x");
  CHECK(shown("0.977", "0 %") == "98 %");
  CHECK(shown("0.977", "0.0%") == "97.7%");
  CHECK(shown("0.00032", "0.0e0") == "3.2e-04");
  CHECK(shown("64k", "0k") == "64k");
  CHECK(shown("8192 * 8192", "0.0 million") == "67.1 million");
  CHECK(shown("0 - 0.2", "0.0") == "-0.2");
  CHECK(shown("537 MB", "0.0 GiB") == "0.5 GiB");
}

TEST_CASE("a value that is not 0 is never written as 0") {
  CHECK(shown("0 B", "0 MB") == "0 MB");
  CHECK(shown("1 - 1", "0.0 %") == "0.0 %");
  CHECK(shown("0.6", "0") == "1");
  CHECK(complains("8 kB", "would be written as \"0 MB\" / take a smaller unit, or more decimals", "0 MB"));
  CHECK(complains("0 - 0.2", "would be written as \"-0\" / write more decimals", "0"));
  CHECK(complains("0.0004", "\"0.0 %\"", "0.0 %"));
  CHECK(complains("3", "\"0k\"", "0k"));
}

TEST_CASE("auto writes as reports do") {
  CHECK(shown("545259520 B", "auto") == "545.3 MB");
  CHECK(shown("128 MiB", "auto binary") == "128 MiB");
  CHECK(shown("34359738368 FLOP", "auto") == "34.4 GFLOP");
  CHECK(shown("3.35 TB/s", "auto") == "3.35 TB/s");
  CHECK(shown("38.7 us", "auto") == "38.7 us");
  CHECK(shown("4080 FLOP/B", "auto") == "4,080 FLOP/B");
  CHECK(shown("8192", "auto") == "8,192");
  CHECK(shown("64.7499", "auto") == "64.75");
}

TEST_CASE("a unit that does not fit names both sides") {
  CHECK(complains("N * N", "plain number, and the pattern shows \"MB\"", "0 MB"));
  CHECK(complains("N * N", "multiply it by 1 B", "0 MB"));
  CHECK(complains("N * e", "in B, and the pattern shows a plain number", "0"));
  CHECK(complains("N * e", "in B, and the pattern shows \"s\"", "0.0 s"));
  CHECK(complains("N * e", "in B, and the pattern shows \"%\"", "0 %"));
  CHECK(complains("word", "a text, and the pattern shows a number", "0"));
  CHECK(complains("N", "a number, and the pattern shows a text", "text"));
  for (const char* none :
       {"", "1", "0.", "00", "0,00", "0 XB", "0 MB/", "MB", "0.0 mB", "0 KB", "0  MB", "0,000,000"}) {
    CAPTURE(none);
    CHECK(complains("N", "does not know the pattern", none));
  }
}
