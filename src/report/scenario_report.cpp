#include "report/scenario_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "report/format.hpp"
#include "report/json_dump.hpp"
#include "report/json_path.hpp"
#include "report/run_document.hpp"
#include "report/run_json.hpp"

namespace hbmscope {
namespace {

using Json = nlohmann::ordered_json;

/// Whole numbers are compared as such: a double would round those beyond 2^53.
bool equal(const Json& value, const Json& wanted) {
  if (!value.is_number() || !wanted.is_number()) return value == wanted;
  if (value.is_number_integer() && wanted.is_number_integer()) return value == wanted;
  return !(value.get<double>() < wanted.get<double>()) && !(value.get<double>() > wanted.get<double>());
}

bool meets(const Expectation& expectation, const Json& value) {
  const Json wanted(expectation.wanted);
  if (expectation.rule == Expectation::Rule::equals) return equal(value, wanted);
  if (!value.is_number()) return false;
  const double got = value.get<double>(), bound = wanted.get<double>();
  switch (expectation.rule) {
    case Expectation::Rule::near:
      return std::abs(got - bound) <= expectation.within * std::abs(bound);
    case Expectation::Rule::at_least:
      return got >= bound;
    case Expectation::Rule::at_most:
      return got <= bound;
    case Expectation::Rule::equals:
      break;
  }
  return false;
}

Json quotient(const Json& value, const Json& divisor) {
  if (!value.is_number() || !divisor.is_number()) return nullptr;
  const double ratio = value.get<double>() / divisor.get<double>();
  return std::isfinite(ratio) ? Json(ratio) : Json(nullptr);
}

std::string value_words(const Json& value) {
  if (value.is_null()) return "no value";
  if (value.is_number_integer()) return text::integer(value.get<std::int64_t>());
  if (value.is_number()) {
    const double real = value.get<double>();
    const bool plain = std::abs(real) >= 1e-4 || !(std::abs(real) > 0);
    return plain ? text::significant(real, 6) : text::scientific(real);
  }
  return value.is_string() ? "\"" + value.get<std::string>() + "\"" : json_dump(value);
}

std::string wanted_words(const Expectation& e) {
  const std::string wanted = value_words(Json(e.wanted));
  switch (e.rule) {
    case Expectation::Rule::equals:
      return wanted;
    case Expectation::Rule::near:
      return fmt::format("{} within {} %", wanted, text::significant(100 * e.within, 2));
    case Expectation::Rule::at_least:
      return "at least " + wanted;
    case Expectation::Rule::at_most:
      return "at most " + wanted;
  }
  return wanted;
}

/// The path, with the run's name before it where there are several runs.
std::string place_words(const Scenario& scenario, const ScenarioValue& value) {
  return scenario.runs.size() == 1 ? value.path : fmt::format("{}: {}", scenario.runs[value.run].name, value.path);
}

std::string path_words(const Scenario& scenario, const Expectation& e) {
  const std::string value = place_words(scenario, e.value);
  if (!e.over) return value;
  return fmt::format("{} over {}", value, e.over->run == e.value.run ? e.over->path : place_words(scenario, *e.over));
}

std::string list(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

std::vector<ExpectationResult> check_expectations(const Scenario& scenario, const std::vector<Json>& runs) {
  std::vector<ExpectationResult> results;
  for (std::size_t i = 0; i < scenario.expect.size(); ++i) {
    const Expectation& e = scenario.expect[i];
    const auto value_at = [&](const ScenarioValue& value, const char* key) -> const Json& {
      try {
        return at_path(runs[value.run], value.path);
      } catch (const Error& error) {
        throw Error(ErrorKind::data, fmt::format("{}: /expect/{}{}: {}", scenario.file, i, key, error.what()),
                    error.hint());
      }
    };
    ExpectationResult result;
    result.value = value_at(e.value, "/path");
    if (e.over) result.value = quotient(result.value, value_at(*e.over, "/over/path"));
    result.ok = meets(e, result.value);
    results.push_back(std::move(result));
  }
  return results;
}

std::string miss_words(const Scenario& scenario, const Expectation& expectation, const ExpectationResult& result) {
  return fmt::format("{}: expected {}, got {}", path_words(scenario, expectation), wanted_words(expectation),
                     value_words(result.value));
}

Document scenario_opening(const Scenario& scenario) {
  return {Paragraph{fmt::format("{}: {}", scenario.name, scenario.title)}, Paragraph{scenario.question, true},
          Labelled{"Source", scenario.source}};
}

Labelled scenario_run_words(const ScenarioRun& run) {
  std::string words = shape_words(run.shape, run.pass);
  words += run.algorithms.empty() ? "; the algorithms of the pass" : "; " + list(run.algorithms);
  std::vector<std::string> plan;
  for (const auto& [key, value] : run.plan_json.items())
    plan.push_back(fmt::format("{} {}", key, value.is_string() ? value.get<std::string>() : json_dump(value)));
  if (run.kv_splits) plan.push_back(fmt::format("{} key splits", *run.kv_splits));
  if (!plan.empty()) words += "; " + list(plan);
  words += "; " + run.gpu;
  if (run.sram) words += ", SRAM " + text::binary_bytes(*run.sram);
  if (run.l2) words += run.l2->value() == 0 ? std::string(", no L2") : ", L2 " + text::binary_bytes(*run.l2);
  if (run.l2_warm) words += ", warm";
  if (run.attention_share) words += fmt::format("; attention {} of the step", text::percent(*run.attention_share));
  if (run.attention_speedup) words += fmt::format(", {}x faster", text::significant(*run.attention_speedup, 4));
  if (run.attention_time_saved) words += fmt::format(", {} less time", text::percent(*run.attention_time_saved));
  return {"Run", fmt::format("{}: {}; engine {}", run.name, words, name(run.engine))};
}

Document scenario_expectations(const Scenario& scenario) {
  Document out;
  for (const Expectation& e : scenario.expect) {
    out.push_back(
        Labelled{"Expected", fmt::format("{} = {}. {}", path_words(scenario, e), wanted_words(e), e.because)});
  }
  return out;
}

Document scenario_outcome(const Scenario& scenario, const std::vector<ExpectationResult>& results) {
  Document out{Paragraph{"What was expected, and why"}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Expectation& e = scenario.expect[i];
    const ExpectationResult& r = results[i];
    const std::string value = value_words(r.value), wanted = wanted_words(e);
    const std::string told = r.ok && value == wanted ? value : fmt::format("{} (expected {})", value, wanted);
    out.push_back(
        Labelled{r.ok ? "ok" : "MISSED", fmt::format("{} = {}. {}", path_words(scenario, e), told, e.because)});
  }
  out.push_back(Paragraph{scenario.answer, true});
  return out;
}

Json scenario_to_json(const Scenario& scenario, const std::vector<Json>& runs,
                      const std::vector<ExpectationResult>& results) {
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["scenario"] = {{"name", scenario.name},     {"title", scenario.title},   {"question", scenario.question},
                     {"source", scenario.source}, {"answer", scenario.answer}, {"file", scenario.file}};
  out["runs"] = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Json& run = out["runs"].emplace_back(Json{{"name", scenario.runs[i].name}});
    run.update(runs[i]);
  }
  out["expect"] = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Expectation& e = scenario.expect[i];
    Json& one = out["expect"].emplace_back(
        Json{{"run", scenario.runs[e.value.run].name}, {"path", e.value.path}, {"over", nullptr}});
    if (e.over) one["over"] = {{"run", scenario.runs[e.over->run].name}, {"path", e.over->path}};
    one["rule"] = name(e.rule);
    one["expected"] = Json(e.wanted);
    one["within"] = e.rule == Expectation::Rule::near ? Json(e.within) : Json(nullptr);
    one["value"] = results[i].value;
    one["ok"] = results[i].ok;
    one["because"] = e.because;
  }
  return out;
}

}  // namespace hbmscope
