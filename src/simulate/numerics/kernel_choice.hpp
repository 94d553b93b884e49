#pragma once
#include <span>
#include <string_view>

#include "simulate/numerics/kernels.hpp"

namespace hbmscope::numerics {

/// Every variant that this processor runs, the fastest first; the portable one is always there.
std::span<const Kernels* const> usable_kernels();

/// By name, or the fastest for "". Throws an Error (usage) for a name that this processor does not run.
const Kernels& choose_kernels(std::string_view name);

}  // namespace hbmscope::numerics
