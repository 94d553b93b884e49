#pragma once
#include <string>

#include "model/online_softmax.hpp"

namespace hbmscope {

/// The widest value row whose tables a terminal still shows.
inline constexpr std::size_t kMaxSoftmaxWidth = 2;

/// Reads `--scores "2,1|3,0"` (blocks between '|', -inf for a masked key) and `--values 1,2,3,4` or `"1,2;3,4"` (a row
/// a score). Spaces around numbers are fine. Errors (kind usage) name the option.
SoftmaxInput parse_softmax(const std::string& scores, const std::string& values);

}  // namespace hbmscope
