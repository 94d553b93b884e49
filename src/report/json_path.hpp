#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hbmscope {

/// The value at a path into a result, such as
///
///     algorithms[name=flash_v2].traffic[boundary=l2_hbm,provenance=simulated].total_bytes
///
/// A path is keys with '.' between them. A key that holds a '.' or a bracket stands in quotes: values["S1-01"].bytes,
/// and any other key may. A key of a list is followed by [2], which counts from 0, or by conditions
/// [key=value,...], which exactly one element must meet. The key of a condition may itself be a path (plan.block_q),
/// and its value is a text as it stands or a JSON value: null, true, 128, [128,128]. A key that is absent meets no
/// condition.
///
/// Throws an Error (kind data) that names the path and the step that failed, with what there is in its place.
const nlohmann::ordered_json& at_path(const nlohmann::ordered_json& document, std::string_view path);

/// The same for steps that begin with '.' or '[', such as "[2].total_bytes", into what a reader knows as `name`.
const nlohmann::ordered_json& at_steps(const nlohmann::ordered_json& value, std::string_view name,
                                       std::string_view steps);

/// The key that steps begin with where it stands in quotes, as in ["S1-01"].bytes. It takes four characters more than
/// it has.
std::optional<std::string_view> quoted_key(std::string_view steps);

/// Why `key` of an object is null, as a key beside it says: for "predicted_s" that is "predicted_reason", or "reason".
/// Empty if none does.
std::string reason_of_null(const nlohmann::ordered_json& object, std::string_view key);

}  // namespace hbmscope
