#include "kernels/attention.hpp"

namespace hbmscope::kernels {

#define HBMSCOPE_PIPELINE(name) extern const Pipeline kPipeline_##name;
#include "kernels/kernels.def"
#undef HBMSCOPE_PIPELINE

std::span<const Pipeline* const> pipelines() {
#define HBMSCOPE_PIPELINE(name) &kPipeline_##name,
  static constexpr const Pipeline* kAll[] = {
#include "kernels/kernels.def"
  };
#undef HBMSCOPE_PIPELINE
  return kAll;
}

}  // namespace hbmscope::kernels
