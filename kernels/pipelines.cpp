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

#ifdef HBMSCOPE_TILE_SEARCH
#define HBMSCOPE_CANDIDATE(name, ...) extern const Pipeline kCandidate_##name;
#include "kernels/flash_v3_candidates.def"
#undef HBMSCOPE_CANDIDATE
#endif

std::span<const Pipeline* const> candidates() {
#ifdef HBMSCOPE_TILE_SEARCH
#define HBMSCOPE_CANDIDATE(name, ...) &kCandidate_##name,
  static constexpr const Pipeline* kAll[] = {
#include "kernels/flash_v3_candidates.def"
  };
#undef HBMSCOPE_CANDIDATE
  return kAll;
#else
  return {};
#endif
}

}  // namespace hbmscope::kernels
