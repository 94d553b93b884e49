#pragma once
#include <string>

#include "analysis/small_trace.hpp"
#include "results/result.hpp"

namespace hbmscope::plot {

/// An animation of schedules, to be put into the body of an HTML page: what was scaled down and how, the bytes of each
/// algorithm as a table, and, where scripts run, HBM, L2 and SRAM with the tiles that move between them. It brings its
/// own style and script, loads nothing, and leaves elements outside itself alone. A page may hold several.
std::string tiles_animation(const SmallTrace& trace);

/// The same for the shape of a saved result, on its GPU and with the tiles of its flash_v2, where it has one. A
/// paragraph that says why not, where a result has no shape that can be shown.
std::string tiles_animation(const Result& result);

/// A page of its own with nothing but that.
std::string tiles_animation_page(const SmallTrace& trace);

}  // namespace hbmscope::plot
