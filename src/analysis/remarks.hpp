#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run.hpp"

/// What stands beside the numbers of a run.
namespace hbmscope {

struct PlainFormula {
  std::string_view text;  ///< empty where the plan has more than the algorithm's paper
  bool exact = false;     ///< gives the very bytes of each head; a mask, GQA or d_v != d leave it an upper guide
};
/// The formula of the algorithm's sm_l2 bytes under this kind of plan.
PlainFormula plain_formula(const Algorithm& algorithm, const AttentionShape& shape, const TilePlan& plan);

/// What a reader must know to read the numbers right: rows without keys, S and P that stay in L2, memory that does not
/// suffice, overflow, ...
std::vector<std::string> warnings_of(const RunResult& result);

}  // namespace hbmscope
