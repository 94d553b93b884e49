#pragma once
#include <string>

#include "analysis/run.hpp"

namespace hbmscope {

/// Flat rows: one an algorithm, stage, boundary, provenance and tensor, units in the column names, plain numbers in the
/// cells (RFC 4180).
std::string run_to_csv(const RunResult& result);

/// The cells of kPlanColumns; empty where the algorithm has no such tile.
std::string plan_cells(const Algorithm& algorithm, const TilePlan& plan);
inline constexpr const char* kPlanColumns = "block_q,block_kv,cluster,gemm_tile";

}  // namespace hbmscope
