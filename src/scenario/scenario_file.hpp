#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"
#include "model/attention_shape.hpp"
#include "model/tile_plan.hpp"

namespace hbmscope {

/// How far a scenario's run goes. The GPU's own kernels are left out, so that an answer never depends on the machine.
enum class ScenarioEngine : std::uint8_t { model, sim, cpu };

std::string_view name(ScenarioEngine engine);

/// One run of a scenario: what the options of `hbmscope run` are on the command line.
struct ScenarioRun {
  std::string name;
  AttentionShape shape;  ///< valid
  std::string pass = "forward";
  std::vector<std::string> algorithms;  ///< as the file has them; empty: the pass's own
  TilePlan plan;
  nlohmann::json plan_json;  ///< as it was given; an empty object if it was left out
  std::optional<std::int64_t> kv_splits;
  std::string gpu;
  std::optional<Bytes> sram;
  std::optional<Bytes> l2;  ///< 0: none
  bool l2_warm = false;
  ScenarioEngine engine = ScenarioEngine::sim;
  std::optional<double> attention_share, attention_speedup, attention_time_saved;
};

/// Where a value stands: a path (report/json_path.hpp) into the JSON of one run.
struct ScenarioValue {
  std::size_t run = 0;  ///< index into Scenario::runs
  std::string path;
};

/// What one value, or the quotient of two, must be.
struct Expectation {
  enum class Rule : std::uint8_t { equals, near, at_least, at_most };
  ScenarioValue value;
  std::optional<ScenarioValue> over;  ///< the divisor
  Rule rule = Rule::equals;
  nlohmann::json wanted;  ///< a number; for equals also a text or a bool
  double within = 0;      ///< near: the largest relative difference
  std::string because;
};

std::string_view name(Expectation::Rule rule);

struct Scenario {
  std::string file;  ///< its path, or its name where it is embedded: what errors name
  std::string name, title, question, source, answer;
  std::vector<ScenarioRun> runs;    ///< at least one
  std::vector<Expectation> expect;  ///< at least one
};

/// Reads a scenario (docs/scenarios.md). Strict: a key that nobody knows, a value of the wrong kind or an impossible
/// shape is an Error (kind data) that names the file and the key by its JSON pointer. Names of algorithms and GPUs are
/// looked up later, by request_of() in analysis/from_scenario.hpp, and paths when the runs are there.
Scenario parse_scenario(std::string_view text, std::string_view source_name);

/// An embedded scenario by its name, or a scenario file by its path, which ends in ".json". An unknown name is an Error
/// (kind usage) with the nearest ones.
Scenario find_scenario(std::string_view name_or_path);

}  // namespace hbmscope
