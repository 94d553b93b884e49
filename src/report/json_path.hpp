#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace hbmscope {

/// The value at a path into a result, such as
///
///     algorithms[name=flash_v2].traffic[boundary=l2_hbm,provenance=simulated].total_bytes
///
/// A path is keys with '.' between them. A key of a list is followed by [2], which counts from 0, or by conditions
/// [key=value,...], which exactly one element must meet. The key of a condition may itself be a path (plan.block_q),
/// and its value is a text as it stands or a JSON value: null, true, 128, [128,128]. A key that is absent meets no
/// condition.
///
/// Throws an Error (kind data) that names the path and the step that failed, with what there is in its place.
const nlohmann::ordered_json& at_path(const nlohmann::ordered_json& document, std::string_view path);

/// The same for steps that begin with '.' or '[', such as "[2].total_bytes", into what a reader knows as `name`.
const nlohmann::ordered_json& at_steps(const nlohmann::ordered_json& value, std::string_view name,
                                       std::string_view steps);

}  // namespace hbmscope
