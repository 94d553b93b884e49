#pragma once
#include <cstdint>
#include <vector>

#include "model/algorithm.hpp"

namespace hbmscope {

/// How many tiles the kernels ask for, loads and stores. Walks one head where all are alike, else all of them, so it
/// takes as long as looking at their tiles. An Error where the number does not fit 64 bits.
std::int64_t count_requests(const std::vector<KernelWalk>& kernels);

/// The same from three passes of each kernel, for shapes that are too large to be walked: off where passes differ.
double estimate_requests(const std::vector<KernelWalk>& kernels);

}  // namespace hbmscope
