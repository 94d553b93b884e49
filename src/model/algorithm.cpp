#include "model/algorithm.hpp"

#include <array>
#include <string>

#include "core/suggest.hpp"
#include "model/algorithms/all.hpp"

namespace hbmscope {

std::span<const Algorithm> algorithms() {
  static const std::array<Algorithm, 8> all{kNaive,   kFlashV1,  kFlashV2,    kFlashV3,
                                            kSplitKv, kNaiveBwd, kFlashV1Bwd, kFlashV2Bwd};
  return all;
}

const Algorithm& algorithm(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Algorithm& a : algorithms()) {
    if (a.name == name) return a;
    names.push_back(a.name);
  }
  throw Error(ErrorKind::usage, "unknown algorithm \"" + std::string(name) + "\"", did_you_mean(name, names));
}

Traffic total(std::span<const StageTraffic> stages) {
  Traffic sum(Boundary::sm_l2);
  for (const StageTraffic& stage : stages) sum += stage.traffic;
  return sum;
}

void walk(const std::vector<KernelWalk>& kernels, TileListener& to) {
  for (const KernelWalk& kernel : kernels) {
    for (std::int64_t cta = 0; cta < kernel.num_ctas; ++cta) {
      for (std::int64_t pass = 0; pass < kernel.passes_per_cta; ++pass) kernel.walk_pass(cta, pass, to);
    }
  }
}

}  // namespace hbmscope
