// Every number of the worked examples comes out of the model, within the tolerance it is printed with; every claim is
// demonstrated, and the demonstration fails where the values are wrong.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "analysis/worked_examples.hpp"
#include "analysis/worked_examples/demonstrations.hpp"
#include "cli_checks.hpp"
#include "json_schema.hpp"
#include "report/worked_examples_report.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;
using nlohmann::json;

namespace {

std::string source_file(const std::string& name) {
  return text_of_file(std::string(HBMSCOPE_SOURCE_DIR) + "/" + name);
}

/// Ids, expected values with their tolerance, and unrounded ones that were computed apart from hbmscope.
const json& reference() {
  static const json file = json::parse(source_file("tests/data/worked_examples.json"));
  return file;
}

const std::vector<WorkedExample>& examples() {
  static const std::vector<WorkedExample> all = [] {
    std::vector<WorkedExample> computed;
    for (const WorkedEntry* entry : worked_entries()) computed.push_back({entry, worked_values(*entry)});
    return computed;
  }();
  return all;
}

const WorkedExample& example(std::string_view id) {
  const auto found =
      std::find_if(examples().begin(), examples().end(), [&](const WorkedExample& e) { return e.entry->id == id; });
  REQUIRE(found != examples().end());
  return *found;
}

const json& printed() {
  static const json all = json::parse(worked_examples_to_json(examples(), false).dump());
  return all;
}

/// `value`, a number or a list of them, is `wanted` within `tolerance` of each.
bool within(const json& value, const json& wanted, const std::function<double(double)>& tolerance) {
  if (wanted.is_array()) {
    if (!value.is_array() || value.size() != wanted.size()) return false;
    return std::equal(value.begin(), value.end(), wanted.begin(),
                      [&](const json& a, const json& b) { return within(a, b, tolerance); });
  }
  if (!value.is_number()) return false;
  const double w = wanted.get<double>();
  return std::abs(value.get<double>() - w) <= tolerance(w);
}

/// The same content with every number in it changed by `change`, which also turns yes into no and the other way round.
WorkedValue::Content changed(const WorkedValue::Content& content, const std::function<double(double)>& change) {
  const auto whole = [&](std::int64_t x) { return static_cast<std::int64_t>(change(static_cast<double>(x))); };
  if (const auto* yes = std::get_if<bool>(&content)) return !*yes;
  if (const auto* x = std::get_if<std::int64_t>(&content)) return whole(*x);
  if (const auto* x = std::get_if<double>(&content)) return change(*x);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&content)) {
    std::vector<std::int64_t> other;
    for (const std::int64_t x : *list) other.push_back(whole(x));
    return other;
  }
  if (const auto* list = std::get_if<std::vector<double>>(&content)) {
    std::vector<double> other;
    for (const double x : *list) other.push_back(change(x));
    return other;
  }
  return content;
}

}  // namespace

TEST_CASE("all 79 examples come out, under the ids of the reference and no others") {
  std::set<std::string> wanted, found;
  for (const json& row : reference()) wanted.insert(row["id"]);
  for (const auto& [id, values] : printed().items()) found.insert(id);
  CHECK(wanted.size() == 79);
  CHECK(found == wanted);
  CHECK(examples().size() == 79);
}

TEST_CASE("every expected value is there and within its tolerance") {
  std::size_t checked = 0;
  for (const json& row : reference()) {
    const std::string id = row["id"];
    for (const auto& [name, wanted] : row["expected"].items()) {
      CAPTURE(id);
      CAPTURE(name);
      REQUIRE(printed()[id].contains(name));
      CAPTURE(printed()[id][name].dump());
      const double tolerance = row["tolerance"][name];
      CHECK(within(printed()[id][name], wanted, [&](double) { return tolerance; }));
      ++checked;
    }
  }
  CHECK(checked == 81);
}

TEST_CASE("every value that was computed apart is there, unrounded, to 1e-9") {
  std::size_t checked = 0;
  for (const json& row : reference()) {
    const std::string id = row["id"];
    for (const auto& [name, wanted] : row["recomputed"].items()) {
      CAPTURE(id);
      CAPTURE(name);
      REQUIRE(printed()[id].contains(name));
      CAPTURE(printed()[id][name].dump());
      CHECK(within(printed()[id][name], wanted, [](double w) { return 1e-9 * std::abs(w); }));
      ++checked;
    }
  }
  CHECK(checked == 136);
}

TEST_CASE("bytes and counts that are whole stay whole") {
  for (const auto& [id, name] :
       {std::pair{"S0-01", "bytes"}, std::pair{"S0-01", "MiB_"}, std::pair{"S0-05", "d2"}, std::pair{"S1-12", "bytes"},
        std::pair{"S1-28", "kv_derived"}, std::pair{"S1-30", "elements"}, std::pair{"S2-02", "elements"}}) {
    CAPTURE(id);
    CHECK(printed()[id][name].is_number_integer());
  }
  CHECK(printed()["S1-01"]["MB"].is_number_float());
}

TEST_CASE("every claim holds") {
  std::size_t claims = 0;
  for (const WorkedExample& e : examples()) {
    CAPTURE(e.entry->id);
    CHECK(e.entry->id.starts_with('Q') == (e.entry->claim != nullptr));
    if (e.entry->claim == nullptr) continue;
    ++claims;
    CAPTURE(printed()[std::string(e.entry->id)].dump());
    CHECK(e.values.flag("holds"));
    CHECK(e.values.all().size() > 2);
  }
  CHECK(claims == 27);
}

TEST_CASE("every demonstration can fail: wrong values make its claim false") {
  const std::function<double(double)> slips[]{[](double) { return 0; }, [](double x) { return x / 2; },
                                              [](double x) { return 1000 * x; }, [](double x) { return x + 1; },
                                              [](double x) { return -x; }};
  for (const WorkedExample& e : examples()) {
    if (e.entry->claim == nullptr) continue;
    std::size_t decisive = 0;
    const std::size_t shown = e.values.all().size() - 1;  // without "holds"
    for (std::size_t i = 0; i < shown; ++i) {
      bool noticed = false;
      for (const auto& slip : slips) {
        WorkedValues wrong = e.values;
        wrong.all()[i].content = changed(wrong.all()[i].content, slip);
        wrong.all()[i].reason.clear();  // nor may a missing value do without its reason
        noticed = noticed || !e.entry->claim(wrong);
      }
      decisive += static_cast<std::size_t>(noticed);
    }
    CAPTURE(e.entry->id);
    CHECK(decisive * 2 >= shown);  // not one of many figures alone
  }
}

TEST_CASE("a merge that forgets the weights is noticed") {
  const SoftmaxInput input{{{2, 1}, {3, 0}}, {{1}, {2}, {3}, {4}}};
  const auto holds = [](const SoftmaxResult& r) {
    WorkedValues values;
    worked::show_unmerged(r, values);
    return worked::merging_is_needed(values);
  };
  const SoftmaxResult right = online_softmax(input, std::nullopt);
  CHECK(holds(right));
  SoftmaxResult wrong = right;
  BlockSoftmax& merged = wrong.normalised.back().merged;
  merged.o[0] = right.normalised[0].block.o[0] / 2 + right.normalised[1].block.o[0] / 2;  // a plain mean
  CHECK_FALSE(holds(wrong));
  merged.o = right.o_unmerged;
  CHECK_FALSE(holds(wrong));
  // Of a single block nothing has to be merged, so the claim is not shown.
  CHECK_FALSE(holds(online_softmax({{{2, 1, 3, 0}}, {{1}, {2}, {3}, {4}}}, std::nullopt)));
}

TEST_CASE("the wrong answers of unmerged tiles: weights that sum to 2, 4.316 and 2.158 instead of 2.471") {
  const double e1 = std::exp(-1.0), e3 = std::exp(-3.0);
  const double first = (1 + 2 * e1) / (1 + e1), second = (3 + 4 * e3) / (1 + e3);
  const WorkedValues& v = example("Q-06").values;
  CHECK(v.number("weights_sum") == 2);
  CHECK(v.number("o_unmerged") == doctest::Approx(first + second));
  CHECK(v.number("o_unmerged") == doctest::Approx(4.316).epsilon(0.0002));
  CHECK(v.number("o_mean_of_tiles") == doctest::Approx(2.158).epsilon(0.0003));
  CHECK(v.number("o_right") == doctest::Approx(2.471).epsilon(0.0002));
}

TEST_CASE("what the demonstrations count is what their formulas say") {
  const auto number = [](const char* id, const char* name) { return example(id).values.number(name); };
  const auto list = [](const char* id, const char* name) { return example(id).values.list(name); };
  CHECK(number("Q-01", "visible_pairs") == 96 * 97 / 2);
  CHECK(number("Q-04", "flop_ratio_bwd") == 1.25);
  CHECK(number("Q-07", "fp16_left") == 1000);
  CHECK(number("Q-07", "fp16_right") == 1000.5);
  CHECK(number("Q-08", "naive_bytes") == 2 * 8192 * 128 * 2 + 2 * 128 * 2 + 4 * 8192 * 2);
  CHECK(number("Q-08", "flash_bytes") == 2 * 8192 * 128 * 2 + 2 * 128 * 2 + 4);
  CHECK(number("Q-15", "tiles_per_query_tile") == 1024 / 128 + 1);
  CHECK(number("Q-18", "partial_bytes_per_row") == 2 * 8 * 129 * 4);
  CHECK(list("Q-05", "flash_statistics") == std::vector<double>{2048 * 4, 4096 * 4, 8192 * 4});
  CHECK(list("Q-14", "visited_fraction") == std::vector<double>{9.0 / 16, 33.0 / 64, 129.0 / 256});
  CHECK(list("Q-25", "naive_square_tensors") == std::vector<double>{2, 2, 2});
  CHECK(number("S0-04", "counted_at_N_8192") == doctest::Approx(5.06).epsilon(0.001));
  CHECK(number("S2-08", "arxiv_passes_if_12Nd") == doctest::Approx(18).epsilon(0.001));
  CHECK(number("S2-08", "counted_std_passes") == 11);
  CHECK(number("S2-08", "counted_std_GB") == 11.0 * 2147483648 + 12.0 * 134217728);
}

TEST_CASE("what is quoted names its source, what is null its reason, and what rests on a convention says so") {
  const nlohmann::ordered_json details = worked_examples_to_json(examples(), true);
  for (const WorkedExample& e : examples()) {
    CAPTURE(e.entry->id);
    CHECK_FALSE(e.entry->question.empty());
    if (e.entry->provenance == Provenance::quoted) CHECK_FALSE(e.entry->source.empty());
    for (const WorkedValue& value : e.values.all()) {
      CAPTURE(value.name);
      const bool missing = value.content.index() == 0;
      CHECK(missing == !value.reason.empty());
      CHECK(details[std::string(e.entry->id)]["reasons"].contains(std::string(value.name)) == missing);
    }
    std::set<std::string_view> names;
    for (const WorkedValue& value : e.values.all()) names.insert(value.name);
    CHECK(names.size() == e.values.all().size());
  }
  for (const char* id : {"S1-26", "S1-31", "S2-07", "S2-08", "S2-09", "S1-25", "S1-27"})
    CHECK(example(id).entry->provenance == Provenance::quoted);
  for (const char* id : {"S0-04", "S0-06", "S0-08", "S1-02", "S1-03", "S1-04", "S1-10", "S1-13", "S1-14", "S1-21",
                         "S1-22", "S1-23", "S1-26", "S1-28", "S1-31", "S1-32", "S2-03", "S2-07", "S2-08", "S2-09"}) {
    CAPTURE(id);
    CHECK_FALSE(example(id).entry->remark.empty());
  }
}

TEST_CASE("the table shows every example once, within 100 columns") {
  const std::string text = to_text(worked_examples_document(examples()), 100, false);
  CHECK(text.starts_with("79 worked examples: 27 of 27 claims hold"));
  std::map<std::string, int> shown;
  for (const std::string& line : lines_of(text)) {
    CAPTURE(line);
    CHECK(line.size() <= 100);
    if (line.size() > 7 && line.starts_with("  ") && (line[2] == 'S' || line[2] == 'Q')) {
      const std::vector<std::string> first = words(line);
      if (!first[0].ends_with(':') && !first[0].ends_with(',')) ++shown[first[0]];
    }
  }
  CHECK(shown.size() == 79);
  for (const auto& [id, times] : shown) {
    CAPTURE(id);
    CHECK(times == 1);
  }
  for (const char* part : {"134.2 MB", "128 MiB", "34.4 GFLOP", "1.59 ms", "26.4 TB/s", "64 FLOP/B"}) {
    CAPTURE(part);
    CHECK(has(text, part));
  }
}

TEST_CASE("lesson values writes nothing but the values, and what the schema says") {
  const JsonSchema by(json::parse(source_file("docs/schema/lesson_values.schema.json")));
  const auto started = std::chrono::steady_clock::now();
  const Outcome plain = run_program(call("lesson values --json -"));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  CHECK(plain.code == 0);
  CHECK(plain.err.empty());
  CHECK(took.count() < 20);  // about one, on a machine that does nothing else
  const json values = json::parse(plain.out);
  CHECK(values == printed());
  for (const std::string& error : by.errors(values)) FAIL_CHECK(error);

  const json details = json::parse(run_program(call("lesson values --details --json -")).out);
  for (const std::string& error : by.errors(details)) FAIL_CHECK(error);
  CHECK(details.size() == 79);
  for (const auto& [id, one] : details.items()) CHECK(one["values"] == values[id]);
  json wrong = values;
  wrong["Q-06"]["holds"] = 1;
  CHECK_FALSE(by.errors(wrong).empty());
  wrong = details;
  wrong["S1-26"].erase("source");
  CHECK_FALSE(by.errors(wrong).empty());
}

TEST_CASE("--only takes ids in any order, and one that nobody knows is refused") {
  const json some = json::parse(run_program(call("lesson values --only Q-06,S1-01 --json -")).out);
  CHECK(some.size() == 2);
  CHECK(some["S1-01"] == printed()["S1-01"]);
  CHECK(some["Q-06"]["holds"] == true);
  const Outcome text = run_program(call("lesson values --only S1-01"));
  CHECK(text.out.starts_with("1 worked example: "));
  CHECK(has(text.out, "134.2 MB"));
  CHECK_FALSE(has(text.out, "S1-02"));
  check_complaint(run_program(call("lesson values --only S1-01,S9-01")), 2,
                  "--only: there is no worked example \"S9-01\"", "did you mean");
  check_complaint(run_program(call("lesson values --only S1-01,")), 2, "there is no worked example \"\"",
                  "shows all of them");
  check_complaint(run_program(call("lesson values --details")), 2, "--details", "--json");
  check_complaint(run_program(call("lesson values --json /no/such/folder/x")), 1, "/no/such/folder/x");
  check_complaint(run_program(call("lesson")), 2, "needs a command");
}
