// What pictures are made of: fits, axes, texts, and the curve of traffic against memory.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "analysis/power_law.hpp"
#include "analysis/traffic_by_sram.hpp"
#include "plot/escape.hpp"
#include "plot/scale.hpp"
#include "plot/text_width.hpp"
#include "report/tick_format.hpp"

using namespace hbmscope;
using namespace hbmscope::plot;

TEST_CASE("Student's t is that of printed tables") {
  struct Row {
    std::size_t degrees;
    double t;
  };
  for (const Row& row : std::vector<Row>{{1, 12.706},
                                         {2, 4.303},
                                         {3, 3.182},
                                         {4, 2.776},
                                         {5, 2.571},
                                         {9, 2.262},
                                         {10, 2.228},
                                         {30, 2.042},
                                         {60, 2.000},
                                         {120, 1.980},
                                         {9998, 1.960}}) {
    CAPTURE(row.degrees);
    CHECK(student_t(0.95, row.degrees) == doctest::Approx(row.t).epsilon(0.0003));
  }
  CHECK(student_t(0.99, 10) == doctest::Approx(3.169).epsilon(0.0003));
}

TEST_CASE("a power law is found, with the interval of a fit by hand") {
  const std::vector<double> x{1, 2, 4, 8}, cubes{5, 40, 320, 2560};
  const auto law = fit_power_law(x, cubes);
  REQUIRE(law.has_value());
  CHECK(law->exponent == doctest::Approx(3));
  CHECK(law->factor == doctest::Approx(5));
  CHECK(*law->half_width == doctest::Approx(0).scale(1e-6));

  // Decimal logarithms 0, 1, 2 against 0, log 20, 2: slope 1, residuals -r/2, r, -r/2 about it with r = 2/3 log 2, so
  // that the standard error is sqrt(1.5 r^2 / 1 / 2), and t with one degree of freedom is 12.706.
  const auto bent = fit_power_law(std::vector<double>{1, 10, 100}, std::vector<double>{1, 20, 100});
  REQUIRE(bent.has_value());
  const double r = 2.0 / 3 * std::log10(2.0);
  CHECK(bent->exponent == doctest::Approx(1));
  CHECK(*bent->half_width == doctest::Approx(12.7062 * std::sqrt(1.5 * r * r / 2)).epsilon(1e-4));
}

TEST_CASE("a fit takes only what has a logarithm, and no fit is made of one x") {
  const auto law = fit_power_law(std::vector<double>{0, 1, -2, 4}, std::vector<double>{7, 2, 3, 32});
  REQUIRE(law.has_value());
  CHECK(law->points == 2);
  CHECK(law->exponent == doctest::Approx(2));
  CHECK_FALSE(law->half_width.has_value());
  CHECK_FALSE(fit_power_law(std::vector<double>{3, 3, 3}, std::vector<double>{1, 2, 3}).has_value());
  CHECK_FALSE(fit_power_law(std::vector<double>{3}, std::vector<double>{1}).has_value());
  CHECK_FALSE(fit_power_law({}, {}).has_value());
  CHECK_FALSE(fit_power_law(std::vector<double>{1, 2}, std::vector<double>{0, 5}).has_value());
}

TEST_CASE("ticks are round, few and inside") {
  const auto ticks = [](Unit unit, bool logarithmic, double from, double to, std::size_t wanted) {
    return Scale({"", unit, logarithmic}, from, to, 0, 100).ticks(wanted);
  };
  CHECK(ticks(Unit::length, true, 512, 8192, 8) == std::vector<double>{512, 1024, 2048, 4096, 8192});
  CHECK(ticks(Unit::bytes, true, 1e6, 1e9, 8) == std::vector<double>{1e6, 1e7, 1e8, 1e9});
  CHECK(ticks(Unit::plain, false, 0, 1, 5) == std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1});
  CHECK(std::signbit(ticks(Unit::plain, false, 0, 10, 5)[0]) == false);
  for (const bool logarithmic : {true, false}) {
    for (const double to : {1.5, 3.0, 100.0, 1e12, 1e300}) {
      for (const std::size_t wanted : {3U, 8U}) {
        const Scale scale({"", Unit::bytes, logarithmic}, 1, to, 0, 100);
        const std::vector<double> all = scale.ticks(wanted);
        CAPTURE(to);
        CAPTURE(logarithmic);
        CHECK(all.size() >= 1);
        CHECK(all.size() <= 14);
        for (const double tick : all) CHECK(std::abs(scale(tick) - 50) <= 50.001);  // pixels 0 to 100
      }
    }
  }
}

TEST_CASE("a scale keeps order and ends, and one value has room on both sides") {
  const Scale log({"", Unit::bytes, true}, 10, 1000, 0, 100);
  CHECK(log(100) == doctest::Approx(50));
  CHECK(log(10) > 0);
  CHECK(log(1000) < 100);
  const Scale single({"", Unit::bytes, true}, 7, 7, 0, 100);
  CHECK(single(7) == doctest::Approx(50));
  const Scale flat({"", Unit::bytes, false}, 0, 0, 0, 100);
  CHECK(std::isfinite(flat(0)));
  CHECK(Scale({"", Unit::bytes, false}, 0, 8, 100, 0)(2) == doctest::Approx(75));
}

TEST_CASE("ticks are written as people write them") {
  CHECK(text::tick(1e6, "B") == "1 MB");
  CHECK(text::tick(2.5e9, "B") == "2.5 GB");
  CHECK(text::tick(0, "B") == "0 B");
  CHECK(text::tick(5e14, "FLOP/s") == "500 TFLOP/s");
  CHECK(text::tick(0.01, "") == "0.01");
  CHECK(text::tick(1e-5, "") == "1e-05");
  CHECK(text::tick(10000, "") == "10,000");
  CHECK(text::length_tick(512) == "512");
  CHECK(text::length_tick(8192) == "8k");
  CHECK(text::length_tick(1048576) == "1M");
  CHECK(text::length_tick(1000) == "1000");
  CHECK(text::binary_tick(232448) == "227 KiB");
}

TEST_CASE("somebody else's text can neither open an element nor close an attribute") {
  CHECK(escaped("<b onload='x'>\"&") == "&lt;b onload=&#39;x&#39;&gt;&quot;&amp;");
  CHECK(escaped("]]> --> </script>") == "]]&gt; --&gt; &lt;/script&gt;");
  CHECK(clean("a\x01"
              "b") ==
        "a\xEF\xBF\xBD"
        "b");
  CHECK(clean("a\nb\tc") == "a b c");
  CHECK(clean("\xff\xc3") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(clean("\xE2\x80\xAEx") == "\xEF\xBF\xBDx");  // a right-to-left override
  CHECK(clean("\xEF\xBF\xBF") == "\xEF\xBF\xBD");    // XML 1.0 has no U+FFFF
  CHECK(clean("N\xC2\xB2 \xE5\xA4\xA7") == "N\xC2\xB2 \xE5\xA4\xA7");
}

TEST_CASE("texts are broken and shortened to a width") {
  CHECK(text_width("", 12) == 0);
  CHECK(text_width("ab", 10) == doctest::Approx(6.13 + 6.35));  // of DejaVu Sans: 613 and 635 thousandths
  CHECK(text_width("ab", 10, true) > text_width("ab", 10));
  for (const std::string& line : wrapped("one two three four five six seven", 10, 60)) {
    CHECK(text_width(line, 10) <= 60);
    CHECK(line.front() != ' ');
  }
  CHECK(wrapped("one two", 10, 1000) == std::vector<std::string>{"one two"});
  const std::vector<std::string> cut = wrapped("aaaaaaaaaaaaaaaaaaaa", 10, 40);
  CHECK(cut.size() == 4);
  std::string joined;
  for (const std::string& piece : cut) joined += piece;
  CHECK(joined == "aaaaaaaaaaaaaaaaaaaa");
  CHECK(wrapped("", 10, 40).empty());
  CHECK(shortened("short", 10, 100) == "short");
  CHECK(text_width(shortened("a very long label of a series", 10, 60), 10) <= 60);
  CHECK(shortened("a very long label of a series", 10, 60).ends_with("\xE2\x80\xA6"));
}

TEST_CASE("traffic against memory is that of the tiles that fit") {
  constexpr std::int64_t N = 2048, d = 64, e = 2, statistic = 4;
  AttentionShape shape;
  shape.seqlen_q = shape.seqlen_kv = N;
  shape.head_dim = shape.head_dim_v = d;
  std::vector<Bytes> memories;
  for (std::int64_t size = 1024; size <= (std::int64_t{4} << 20); size += size / 3) memories.emplace_back(size);

  const auto naive = traffic_by_sram(algorithm("naive"), shape, memories);
  REQUIRE(naive.size() == memories.size());
  for (const SramPoint& point : naive) CHECK(point.traffic.value() == 4 * N * N * e + 4 * N * d * e);

  const auto flash = traffic_by_sram(algorithm("flash_v2"), shape, memories);
  std::size_t compared = 0;
  for (const Bytes memory : memories) {
    std::int64_t rows = 0;  // the most query rows, by sixteens, beside 16 keys and values
    while (rows < N && (rows + 16) * d * e + 2 * 16 * d * e <= memory.value()) rows += 16;
    if (rows == 0) continue;
    REQUIRE(compared < flash.size());
    const std::int64_t tiles = (N + rows - 1) / rows;
    CHECK(flash[compared].sram == memory);
    CHECK(flash[compared].traffic.value() == 2 * tiles * N * d * e + 2 * N * d * e + statistic * N);
    ++compared;
  }
  CHECK(compared == flash.size());
  CHECK(compared > 10);

  for (const SramPoint& point : traffic_by_sram(algorithm("flash_v1"), shape, memories)) {
    const std::int64_t M = point.sram.value() / e, keys = (M + 4 * d - 1) / (4 * d);
    const std::int64_t passes = (N + keys - 1) / keys;
    CHECK(point.traffic.value() ==
          2 * N * d * e + passes * N * (3 * d * e + 4 * statistic) + N * (d * e + 2 * statistic));
  }
}
