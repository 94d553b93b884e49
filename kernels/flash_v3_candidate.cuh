#pragma once
#include "kernels/flash_v3.cuh"

/// The host's side of a choice that the tile search times: kernels/flash_v3.cu compiled for HBMSCOPE_CANDIDATE_TILE and
/// bf16, as a pipeline named HBMSCOPE_CANDIDATE. CMake makes a file for each row of flash_v3_candidates.def.
namespace hbmscope::kernels {
namespace {

using Candidate = HBMSCOPE_CANDIDATE_TILE;

std::string unsupported(const AttentionShape& s) {
  const std::int64_t width = std::max(s.head_dim, s.head_dim_v);
  if (width > Candidate::kHeadDim || (Candidate::kHeadDim > 64 && width <= Candidate::kHeadDim / 2)) {
    return "it is compiled for another head_dim";
  }
  return unsupported_by_rung(s);
}
TilePlan plan(const AttentionShape&, const TilePlan& wanted) {
  TilePlan p = wanted;
  take_tile<Candidate>(HBMSCOPE_CANDIDATE_NAME, p);
  return p;
}
std::vector<Temporary> temporaries(const AttentionShape&, const TilePlan&) {
  return {};
}
std::vector<Stage> stages(const AttentionShape&, const TilePlan&) {
  return {{"fused", launch_tile<BFloat16, Candidate>}};
}

}  // namespace

extern const Pipeline HBMSCOPE_CANDIDATE{HBMSCOPE_CANDIDATE_NAME, "flash_v3",  "kernels/flash_v3.cu", unsupported, plan,
                                         temporaries,             stages};

}  // namespace hbmscope::kernels
