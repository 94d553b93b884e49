#include "measure/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace hbmscope {

double quantile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const auto above = std::min(below + 1, values.size() - 1);
  const double part = place - std::floor(place);
  return values[below] + part * (values[above] - values[below]);
}

}  // namespace hbmscope
