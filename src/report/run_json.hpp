#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/run.hpp"
#include "core/json_text.hpp"

namespace hbmscope {

/// Raised with its major number when a field is renamed or removed.
inline constexpr std::string_view kSchemaVersion = "1.0";

/// The result as docs/schema/run.schema.json describes it: SI units, every integer exact, null with status and reason
/// for what is not known.
nlohmann::ordered_json run_to_json(const RunResult& result, const std::vector<std::string>& argv);

/// What a row of a sweep shows of the same result, as the members `shape`, `gpu` and `algorithms`: no tensors, no
/// stages, of the GPU its name. Each member has the name, the place and the meaning that it has in run_to_json().
void write_run_row(JsonText& to, const RunResult& result);

}  // namespace hbmscope
