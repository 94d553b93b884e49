#include "results/result.hpp"

#include <algorithm>

namespace hbmscope {

const ResultTraffic* ResultAlgorithm::find(std::string_view boundary, std::string_view provenance) const {
  const ResultTraffic* first = nullptr;
  for (const ResultTraffic& entry : traffic) {
    if (entry.boundary != boundary || entry.provenance != provenance) continue;
    if (entry.plan == plan) return &entry;
    if (first == nullptr) first = &entry;
  }
  return first;
}

const ResultAlgorithm* Result::find(std::string_view algorithm) const {
  const auto found = std::find_if(algorithms.begin(), algorithms.end(),
                                  [&](const ResultAlgorithm& one) { return one.name == algorithm; });
  return found == algorithms.end() ? nullptr : &*found;
}

}  // namespace hbmscope
