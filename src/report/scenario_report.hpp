#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/document.hpp"
#include "scenario/scenario_file.hpp"

namespace hbmscope {

/// What came of one expectation.
struct ExpectationResult {
  nlohmann::ordered_json value;  ///< found at its path, or the quotient; null where a run has none
  bool ok = false;
};

/// Compares each expectation with the runs' JSON (run_to_json), which stand in the order of the scenario's runs. Throws
/// an Error (kind data) that names the file and the expectation for a path that leads nowhere.
std::vector<ExpectationResult> check_expectations(const Scenario& scenario,
                                                  const std::vector<nlohmann::ordered_json>& runs);

/// "expected 272,662,528, got 272,662,520", with the path before it.
std::string miss_words(const Scenario& scenario, const Expectation& expectation, const ExpectationResult& result);

/// Question and source, as both `show` and `run` begin.
Document scenario_opening(const Scenario& scenario);
/// One run in words: shape, algorithms, plan, GPU and engine.
Labelled scenario_run_words(const ScenarioRun& run);
/// What is expected and why, before anything has run.
Document scenario_expectations(const Scenario& scenario);
/// What is expected, what came out, and the answer.
Document scenario_outcome(const Scenario& scenario, const std::vector<ExpectationResult>& results);

/// {"schema_version", "scenario", "runs", "expect"}.
nlohmann::ordered_json scenario_to_json(const Scenario& scenario, const std::vector<nlohmann::ordered_json>& runs,
                                        const std::vector<ExpectationResult>& results);

}  // namespace hbmscope
