#pragma once
#include <cstddef>

#include "analysis/run.hpp"
#include "scenario/scenario_file.hpp"

namespace hbmscope {

/// The request that run number `run` of a scenario stands for. An algorithm or a GPU that nobody knows is an Error
/// (kind data) that names the file and the key.
RunRequest request_of(const Scenario& scenario, std::size_t run);

/// run() of that request; a request that cannot be met is an Error (kind data) that names the file and the run.
RunResult run_of(const Scenario& scenario, std::size_t run, const Fraction& progress = {});

}  // namespace hbmscope
