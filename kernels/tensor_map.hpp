#pragma once
#include <cuda.h>

#include <cstdint>

#include "core/dtype.hpp"

namespace hbmscope::kernels {

/// A [batch, heads, rows, width] tensor of 16-bit elements (two of fp8 are one) whose rows start `stride` elements
/// apart, a multiple of 8.
struct Rows {
  const void* base;
  Dtype dtype;
  std::int64_t batch, heads, rows, width, stride;
};

/// Describes it to the copy engine of a Hopper GPU, in boxes of `box_rows` (at most 256) rows by 64 elements whose
/// chunks it swizzles as tile.cuh does. A miss fetches the line's neighbour too, unless nobody will ask twice for the
/// tensor: L2 is told to give such lines up first, and would give the neighbour up before it is asked for. Throws
/// std::runtime_error where the driver refuses.
CUtensorMap panel_map(const Rows& tensor, int box_rows, bool asked_for_again = true);

/// Whether kernels on the current device run as compiled for sm_90a.
bool on_hopper();

}  // namespace hbmscope::kernels
