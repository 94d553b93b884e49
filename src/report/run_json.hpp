#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/run.hpp"

namespace hbmscope {

/// Raised with its major number when a field is renamed or removed.
inline constexpr std::string_view kSchemaVersion = "1.0";

/// The result as docs/schema/run.schema.json describes it: SI units, every integer exact, null with status and reason
/// for what is not known.
nlohmann::ordered_json run_to_json(const RunResult& result, const std::vector<std::string>& argv);

}  // namespace hbmscope
