#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "analysis/batch.hpp"

namespace hbmscope {

/// Appends one line of `hbmscope batch`: shape, algorithm and plan as they were given, then
/// `"traffic": {"Q": {"read": 128000, "write": 0}, ...}` with the tensors that have bytes, `"live_pairs"` and
/// `"compulsory"`. Tens of thousands of these are written a second, hence by hand.
void append_batch_line(std::string& to, const nlohmann::json& shape, std::string_view algorithm,
                       const nlohmann::json& plan, const BatchFigures& figures);

/// Appends `{"error": "message; hint", "line": 7}` for line 7 of the input.
void append_batch_error(std::string& to, std::string_view message, std::string_view hint, std::int64_t line);

}  // namespace hbmscope
