#pragma once
#include "analysis/worked_examples.hpp"
#include "model/online_softmax.hpp"

/// Demonstrations whose input a test replaces by a wrong one.
namespace hbmscope::worked {

/// Each tile's own softmax put side by side, against what merging the tiles gives.
void show_unmerged(const SoftmaxResult& result, WorkedValues& values);
bool merging_is_needed(const WorkedValues& values);

}  // namespace hbmscope::worked
