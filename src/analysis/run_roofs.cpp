#include "analysis/run_roofs.hpp"

namespace hbmscope {

std::vector<GpuRoof> roofs_of(const RunRequest& request) {
  const auto rate = [&](Dtype dtype) -> std::optional<double> {
    const auto& peak = request.gpu.peak[static_cast<std::size_t>(dtype)];
    return peak ? std::optional(peak->value) : std::nullopt;
  };
  return roofs_for({request.gpu.hbm_bandwidth.value, rate(request.shape.dtype), rate(Dtype::bf16)},
                   request.gpu.measured_roofs);
}

RoofDemand demand_of(const AlgorithmResult& algorithm) {
  const auto bytes = [&](Boundary boundary) -> std::optional<double> {
    const TrafficEntry* const entry = algorithm.at(boundary);
    return entry != nullptr && entry->traffic ? std::optional(entry->traffic->total().as_double()) : std::nullopt;
  };
  return {algorithm.flops.matmul.as_double(), bytes(Boundary::l2_hbm), bytes(Boundary::sm_l2),
          algorithm.flops.exp.as_double()};
}

}  // namespace hbmscope
