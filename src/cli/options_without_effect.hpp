#pragma once
#include <CLI/CLI.hpp>

#include "analysis/run.hpp"

namespace hbmscope {

/// Refuses options that were given and that nothing of this request reads: a length where both are given by others, of
/// a plan that no algorithm has, or of a part that the engine leaves out.
void refuse_options_without_effect(const CLI::App& command, const RunRequest& request);

}  // namespace hbmscope
