#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

#include "plot/chart.hpp"

namespace hbmscope::plot {

/// The chart as a Vega-Lite 5 specification with its data inside. Boundary, units, notes and the command stand under
/// `usermeta`, and in the subtitle.
nlohmann::ordered_json to_vega_lite(const Chart& chart, std::string_view title);

}  // namespace hbmscope::plot
