#pragma once
#include <span>

#include "report/document.hpp"
#include "scenario/scenario_file.hpp"

namespace hbmscope {

/// A line a scenario: its name, as much of its question as fits `width` columns, and how many values it checks.
Document scenario_list(std::span<const Scenario> scenarios, int width);

}  // namespace hbmscope
