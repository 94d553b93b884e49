#include "analysis/from_scenario.hpp"

#include <string>

#include "core/error.hpp"
#include "scenario/gpu_file.hpp"

namespace hbmscope {
namespace {

std::string place(const Scenario& scenario, std::size_t run, const char* key = "") {
  return scenario.file + ": /runs/" + std::to_string(run) + key + ": ";
}

/// Calls `part`, and says of what goes wrong where in the file it stands.
template <class Part>
decltype(auto) located(const std::string& where, Part part) {
  try {
    return part();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    throw Error(ErrorKind::data, where + error.what(), error.hint());
  }
}

Engine engine_of(ScenarioEngine engine) {
  switch (engine) {
    case ScenarioEngine::model:
      return Engine::model;
    case ScenarioEngine::sim:
      return Engine::sim;
    case ScenarioEngine::cpu:
      return Engine::cpu;
  }
  return Engine::sim;
}

void check_pass(const Algorithm& a, const std::string& pass, const std::string& where) {
  const bool backward = a.pass == Pass::backward;
  if (pass == "both" || backward == (pass == "backward")) return;
  throw Error(
      ErrorKind::data,
      where + std::string(a.name) + " is a " + (backward ? "backward" : "forward") + " pass, and pass is " + pass,
      "pass both takes either");
}

}  // namespace

RunRequest request_of(const Scenario& scenario, std::size_t run) {
  const ScenarioRun& from = scenario.runs[run];
  RunRequest request;
  request.shape = from.shape;
  request.pass = from.pass;
  const std::string algorithms = place(scenario, run, "/algorithms");
  for (const std::string& name : from.algorithms) {
    check_pass(located(algorithms, [&]() -> const Algorithm& { return algorithm(name); }), from.pass, algorithms);
    request.algorithms.push_back(name);
  }
  request.plan = from.plan;
  request.kv_splits = from.kv_splits;
  request.gpu = located(place(scenario, run, "/gpu"), [&] { return find_gpu(from.gpu); });
  request.sram = from.sram;
  request.l2 = from.l2;
  request.l2_warm = from.l2_warm;
  request.engine = engine_of(from.engine);
  request.amdahl = {from.attention_share, from.attention_speedup, from.attention_time_saved};
  return request;
}

RunResult run_of(const Scenario& scenario, std::size_t run, const Fraction& progress) {
  const RunRequest request = request_of(scenario, run);
  return located(place(scenario, run), [&] { return hbmscope::run(request, {progress, {}}); });
}

}  // namespace hbmscope
