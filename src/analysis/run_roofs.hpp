#pragma once
#include "analysis/run.hpp"
#include "model/gpu_roofs.hpp"

namespace hbmscope {

/// The roofs of the run's GPU that hold for its dtype: the datasheet's and those that its GPU file or --roofs brings.
std::vector<GpuRoof> roofs_of(const RunRequest& request);

/// What an algorithm asks of them: the bytes of its own tiles, and an exponential for each live pair.
RoofDemand demand_of(const AlgorithmResult& algorithm);

}  // namespace hbmscope
