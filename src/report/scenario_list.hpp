#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "report/document.hpp"
#include "scenario/scenario_file.hpp"

namespace hbmscope {

/// Each scenario with its question, wrapped into `width` columns, and how many values it checks.
Document scenario_list(std::span<const Scenario> scenarios, int width);
/// {"schema_version", "meta", "scenarios": [{"name", "title", "question", "source", "runs", "checks"}]}.
nlohmann::ordered_json scenario_list_to_json(std::span<const Scenario> scenarios, const std::vector<std::string>& argv);

}  // namespace hbmscope
