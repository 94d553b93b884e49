#pragma once
#include "kernels/attention.hpp"

namespace hbmscope::kernels {

/// Adds to sums[0] the elements that are NaN or infinite, and to sums[1] a checksum of the bits (fp32, fp16, bf16).
void launch_look(const void* at, std::int64_t elements, Dtype dtype, unsigned long long* sums, CUstream_st* stream);

}  // namespace hbmscope::kernels
