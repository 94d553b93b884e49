#pragma once
#include <utility>
#include <vector>

namespace hbmscope {

/// The value below which `fraction` (0 to 1) of the values lie, interpolated linearly between neighbours; of at least
/// one value.
double quantile(std::vector<double> values, double fraction);
inline double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

}  // namespace hbmscope
