// Charts made of characters: places and lengths of marks, and that they fit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cli_checks.hpp"
#include "core/utf8.hpp"
#include "random_shapes.hpp"
#include "report/run_document.hpp"
#include "report/text_chart.hpp"
#include "scenario/gpu_file.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

namespace {

/// Columns of a line, each character taking one; 0 for a line that is no UTF-8.
std::size_t columns(std::string_view line) {
  std::size_t count = 0;
  while (!line.empty()) {
    const std::size_t length = utf8_length(line);
    if (length == 0) return 0;
    line.remove_prefix(length);
    ++count;
  }
  return count;
}

std::ptrdiff_t number_of(const std::string& line, char c) {
  return std::count(line.begin(), line.end(), c);
}

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7f); });
}

std::vector<Drawing> drawings_of(const RunResult& result, const ChartStyle& style) {
  RunView view;
  view.chart = style;
  std::vector<Drawing> found;
  for (const Block& block : run_document(result, view)) {
    if (const auto* drawing = std::get_if<Drawing>(&block)) found.push_back(*drawing);
  }
  return found;
}

}  // namespace

TEST_CASE("bars are as long as their values, to half a character, on one scale from 0") {
  const std::vector<TextBar> bars{
      {"a", 600, 400, "1 kB"}, {"b", 250, 0, "250 B"}, {"c", 0, 1, "1 B"}, {"d", 0, 0, "0 B"}};
  const std::vector<std::string> lines = draw_bars(bars, {80, false});
  REQUIRE(lines.size() == 4);
  // 80 columns less two blanks, "a", two blanks, two blanks and "250 B".
  constexpr double room = 80 - 2 - 1 - 2 - 2 - 5;
  CHECK(std::abs(static_cast<double>(number_of(lines[0], '#')) - 0.6 * room) <= 0.5);
  CHECK(number_of(lines[0], '#') + number_of(lines[0], '=') == room);
  CHECK(std::abs(static_cast<double>(number_of(lines[1], '#')) - 0.25 * room) <= 0.5);
  CHECK(number_of(lines[1], '=') == 0);
  CHECK(number_of(lines[2], '=') == 1);  // there, though less than half a character
  CHECK(number_of(lines[3], '#') + number_of(lines[3], '=') == 0);
  CHECK(has(lines[0], "1 kB"));
  CHECK(columns(lines[0]) <= 80);
}

TEST_CASE("the roof rises to the ridge and goes on level, and points stand where their values are") {
  const TextAxes axes{[](double) { return std::string("x"); }, [](double) { return std::string("y"); }};
  // Ridge 100 FLOP/B at 1000: a point on the slope, one below it, one under the level part.
  const std::vector<std::string> lines =
      draw_roofline({100, 1000}, {{'A', 10, 100}, {'a', 10, 20}, {'B', 1000, 1000}}, axes, {80, false});
  const auto find = [&](char mark) {
    for (std::size_t row = 0; row < lines.size(); ++row) {
      if (const std::size_t column = lines[row].find(mark); column != std::string::npos) return std::pair(column, row);
    }
    return std::pair(std::string::npos, lines.size());
  };
  const auto [a, a_row] = find('A');
  const auto [low, low_row] = find('a');
  const auto [b, b_row] = find('B');
  CHECK(a == low);
  CHECK(a_row < low_row);
  CHECK(b > a);
  CHECK(b_row < a_row);
  // B stands in the level part of the roof, A in the slope.
  CHECK(lines[b_row].find("-B-") != std::string::npos);
  const std::size_t slope_above = lines[a_row - 1].find('/');
  CHECK(slope_above > a);
  // Logarithmic: from 10 to 1000 are two of the 2.95 decades from 10/3 to 3000 over 65 columns.
  const double per_decade = 64 / std::log10(3000.0 / (10.0 / 3));
  CHECK(std::abs(static_cast<double>(b - a) - 2 * per_decade) <= 1);
}

TEST_CASE("points on one place stand beside each other") {
  const TextAxes axes{[](double) { return std::string(); }, [](double) { return std::string(); }};
  const std::vector<std::string> lines =
      draw_roofline({100, 1000}, {{'A', 10, 50}, {'B', 10, 50}, {'C', 10, 50}}, axes, {80, false});
  CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) { return has(line, "ABC"); }));
}

TEST_CASE("charts of any shape fit their width, in ASCII where it is asked for") {
  Draw draw(31);
  for (int i = 0; i < 60; ++i) {
    RunRequest request;
    request.shape = random_shape(draw, 400);
    request.gpu = find_gpu(draw.one_of<const char*>({"H100 SXM", "T4", "MI300X", "V100 SXM2 32 GB"}));
    request.engine = draw.coin() ? Engine::sim : Engine::model;
    request.pass = draw.one_of<const char*>({"forward", "backward", "both"});
    CAPTURE(describe(request.shape, {}));
    const RunResult result = run(request);
    for (const ChartStyle style : {ChartStyle{80, false}, ChartStyle{80, true}, ChartStyle{60, false}}) {
      const std::vector<Drawing> drawings = drawings_of(result, style);
      CHECK(drawings.size() >= (request.engine == Engine::sim ? 2u : 1u));
      for (const Drawing& drawing : drawings) {
        CAPTURE(drawing.title);
        CHECK(columns(drawing.title) <= 80);
        for (const std::string& line : drawing.lines) {
          CAPTURE(line);
          CHECK(columns(line) > 0);
          if (line.find("FLOP/B") == std::string::npos) CHECK(columns(line) <= static_cast<std::size_t>(style.width));
          CHECK(columns(line) <= 80);
          if (!style.unicode) CHECK(is_ascii(line));
          CHECK(line.back() != ' ');
        }
      }
    }
  }
}

TEST_CASE("run --chart and scenario run --chart draw in ASCII without colour where no terminal is") {
  Call utf8 = call("run --chart");
  utf8.environment = {{"LANG", "C.UTF-8"}, {"LC_ALL", "C.UTF-8"}, {"TERM", "xterm"}};
  const Outcome outcome = run_program(utf8);
  CHECK(outcome.code == 0);
  CHECK(is_ascii(outcome.out));
  CHECK(has(outcome.out, "Bytes through HBM"));
  CHECK(has(outcome.out, "Bytes between SM and L2"));
  CHECK(has(outcome.out, "A naive: "));
  for (const std::string& line : lines_of(outcome.out)) {
    if (has(line, "##")) CHECK(columns(line) <= 80);
  }
  // The figures are those of the table: 4 N d e and N statistics of 4 B is 8.42 MB; naive's bar is the longest.
  const std::vector<std::string> lines = lines_of(outcome.out);
  const auto bar = [&](const char* name) {
    for (const std::string& line : lines) {
      if (line.starts_with(std::string("  ") + name + " ") && has(line, "#")) return line;
    }
    return std::string();
  };
  CHECK(has(bar("flash_v2"), "8.42 MB"));
  CHECK(number_of(bar("naive"), '#') > 20 * number_of(bar("flash_v2"), '#') / 2);
  const Outcome markdown = run_program(words("run --seqlen 512 --chart --markdown -"));
  CHECK(has(markdown.out, "```\n"));
  CHECK(has(run_program(words("scenario run lesson-8k --chart")).out, "Bytes through HBM"));
  // Without it nothing of it is there.
  CHECK_FALSE(has(run_program({"run"}).out, "##"));
}
