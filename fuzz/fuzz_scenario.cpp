#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "core/error.hpp"
#include "scenario/embedded.hpp"
#include "scenario/scenario_file.hpp"

/// The target parses texts of its own only.
std::span<const hbmscope::EmbeddedFile> hbmscope::embedded_scenarios() {
  return {};
}

/// A scenario that is accepted can be run: its expectations point at runs it has and say what they want.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const hbmscope::Scenario scenario =
        hbmscope::parse_scenario(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    if (scenario.runs.empty() || scenario.expect.empty()) std::abort();
    for (const hbmscope::ScenarioRun& run : scenario.runs) {
      if (run.name.empty() || run.gpu.empty() || !run.plan_json.is_object()) std::abort();
      hbmscope::validate(run.shape, hbmscope::Speaker::key);
    }
    for (const hbmscope::Expectation& e : scenario.expect) {
      const bool is_near = e.rule == hbmscope::Expectation::Rule::near;
      if (e.value.run >= scenario.runs.size() || e.wanted.is_null() || (is_near && !(e.within > 0))) std::abort();
      if (e.over && e.over->run >= scenario.runs.size()) std::abort();
    }
  } catch (const hbmscope::Error& error) {
    if (error.kind() != hbmscope::ErrorKind::data) std::abort();
    (void)nlohmann::json(error.what() + error.hint()).dump();  // throws on broken UTF-8
  }
  return 0;
}
