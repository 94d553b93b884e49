#pragma once
#include "kernels/attention.hpp"

namespace hbmscope::kernels {

/// Q, K or V of `seed` on the device, element for element those of RandomInputs on the CPU (in any dtype).
/// `segments` is numerics::normal_segments(), on the device.
void launch_random_inputs(void* to, Tensor tensor, const AttentionShape& shape, std::uint64_t seed,
                          const void* segments, CUstream_st* stream);

}  // namespace hbmscope::kernels
