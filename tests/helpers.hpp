#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "model/tile_plan.hpp"

/// What tests of several rooms take.
namespace hbmscope::testing {

inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

inline TilePlan tiles(std::int64_t block_q, std::int64_t block_kv, std::int64_t num_kv_splits = 1) {
  TilePlan plan;
  plan.block_q = block_q;
  plan.block_kv = block_kv;
  plan.num_kv_splits = num_kv_splits;
  return plan;
}

}  // namespace hbmscope::testing
