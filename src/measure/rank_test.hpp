#pragma once
#include <span>

namespace hbmscope {

/// The two-sided p-value of the Mann-Whitney U test: how probable so large a difference in ranks, or a larger one, is
/// between two samples of one distribution, whatever distribution that is. Equal values share their mean rank. Exact up
/// to kMostExactlyRanked values in all, else by the normal approximation with a correction for ties and continuity. 1
/// where a sample is empty or all values are equal.
double mann_whitney_p(std::span<const double> one, std::span<const double> other);

inline constexpr std::size_t kMostExactlyRanked = 40;

}  // namespace hbmscope
