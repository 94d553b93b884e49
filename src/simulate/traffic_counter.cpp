#include "simulate/traffic_counter.hpp"

namespace hbmscope {

std::vector<StageTraffic> simulate_sm_l2(const std::vector<KernelWalk>& kernels) {
  std::vector<StageTraffic> stages;
  for (const KernelWalk& kernel : kernels) {
    TrafficCounter counter;
    walk({kernel}, counter);
    stages.push_back({kernel.stage, counter.traffic()});
  }
  return stages;
}

}  // namespace hbmscope
