#pragma once
#include <string>

#include "analysis/run.hpp"

namespace hbmscope {

/// Flat rows: one an algorithm, stage, boundary, provenance and tensor, units in the column names, plain numbers in the
/// cells (RFC 4180).
std::string run_to_csv(const RunResult& result);

}  // namespace hbmscope
