#include "simulate/numerics/kernel_choice.hpp"

#include <string>
#include <vector>

#include "core/error.hpp"

namespace hbmscope::numerics {

std::span<const Kernels* const> usable_kernels() {
  static const std::vector<const Kernels*> usable = [] {
    std::vector<const Kernels*> found;
#if defined(__x86_64__)
    // What the files kernels_avx2.cpp and kernels_avx512.cpp are compiled for.
    const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    const bool avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                        __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
    if (avx2 && avx512) found.push_back(&kAvx512Kernels);
    if (avx2) found.push_back(&kAvx2Kernels);
#endif
    found.push_back(&kPortableKernels);
    return found;
  }();
  return usable;
}

const Kernels& choose_kernels(std::string_view name) {
  std::string names;
  for (const Kernels* kernels : usable_kernels()) {
    if (name.empty() || name == kernels->name) return *kernels;
    names.append(names.empty() ? "" : ", ").append(kernels->name);
  }
  throw Error(ErrorKind::usage, "this processor runs no CPU kernels named '" + std::string(name) + "'",
              "it runs: " + names);
}

}  // namespace hbmscope::numerics
