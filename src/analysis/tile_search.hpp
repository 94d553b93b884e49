#pragma once
#include <functional>
#include <string>
#include <vector>

#include "measure/measure.hpp"

namespace hbmscope {

/// Which shapes the kernels of flash_v3's family are timed on, each with and without a causal mask.
struct TileSearchRequest {
  std::vector<std::int64_t> head_dims{64, 128, 256};
  std::vector<std::int64_t> seqlens{1024, 2048, 8192};
  int device = 0;
};

/// One shape: 16,384 tokens of 2,048 columns in bf16, as far as the lengths divide them.
struct TileSearch {
  AttentionShape shape;
  std::vector<PipelineMeasurement> kernels;  ///< the fastest first; those without a time last
};
struct TileSearchResult {
  DeviceProperties device;
  bool has_candidates;  ///< this build has choices besides the tiles that are used
  std::vector<TileSearch> searches;
};

/// Useful work per second at the median time.
FlopPerSecond achieved(const PipelineMeasurement& kernel, const AttentionShape& shape);

/// Verifies and times flash_v2, flash_v3 and every candidate of this build that takes the shape, in turns. Throws an
/// Error (kind device) where there is no GPU.
TileSearchResult search_tiles(const TileSearchRequest& request,
                              const std::function<void(const std::string&)>& progress = {});

}  // namespace hbmscope
