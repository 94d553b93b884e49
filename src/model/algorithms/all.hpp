#pragma once
#include "model/algorithm.hpp"

/// One row an algorithm; each lives in the file of its name.
namespace hbmscope {
extern const Algorithm kNaive;
extern const Algorithm kFlashV1;
extern const Algorithm kFlashV2;
extern const Algorithm kFlashV3;
extern const Algorithm kSplitKv;
extern const Algorithm kNaiveBwd;
extern const Algorithm kFlashV1Bwd;
extern const Algorithm kFlashV2Bwd;
}  // namespace hbmscope
