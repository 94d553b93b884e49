#include "model/traffic.hpp"

#include <stdexcept>

namespace hbmscope {

Traffic& Traffic::operator+=(const Traffic& other) {
  if (boundary_ != other.boundary_) throw std::logic_error("traffics across different boundaries do not add up");
  for (std::size_t t = 0; t < kTensorCount; ++t) bytes_[t] += other.bytes_[t];
  return *this;
}

}  // namespace hbmscope
