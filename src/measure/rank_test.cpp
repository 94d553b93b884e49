#include "measure/rank_test.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace hbmscope {
namespace {

/// Twice the rank of each value among all, so that the mean rank of equal ones is whole; those of `one` come first.
struct Ranks {
  std::vector<std::int64_t> twice;
  double ties = 0;  ///< sum of t^3 - t over groups of t equal values
};

Ranks ranks_of(std::span<const double> one, std::span<const double> other) {
  std::vector<std::pair<double, std::size_t>> sorted;
  for (const double value : one) sorted.emplace_back(value, sorted.size());
  for (const double value : other) sorted.emplace_back(value, sorted.size());
  std::sort(sorted.begin(), sorted.end());
  Ranks ranks{std::vector<std::int64_t>(sorted.size()), 0};
  for (std::size_t begin = 0; begin < sorted.size();) {
    std::size_t end = begin;
    while (end < sorted.size() && sorted[end].first == sorted[begin].first) ++end;
    const auto equal = static_cast<double>(end - begin);
    ranks.ties += equal * equal * equal - equal;
    // Ranks begin + 1 to end; twice their mean is the sum of both.
    for (std::size_t i = begin; i < end; ++i)
      ranks.twice[sorted[i].second] = static_cast<std::int64_t>(begin + 1 + end);
    begin = end;
  }
  return ranks;
}

/// Of all ways to choose `chosen` of the ranks, the share whose sum lies as far from the middle as `sum`, or farther.
double exact_p(const std::vector<std::int64_t>& ranks, std::size_t chosen, std::int64_t sum) {
  std::int64_t all = 0;
  for (const std::int64_t rank : ranks) all += rank;
  const auto sums = static_cast<std::size_t>(all) + 1;
  // ways[k][s]: how often k of the ranks so far add up to s.
  std::vector<std::vector<double>> ways(chosen + 1, std::vector<double>(sums, 0));
  ways[0][0] = 1;
  for (const std::int64_t rank : ranks) {
    const auto step = static_cast<std::size_t>(rank);
    for (std::size_t k = chosen; k > 0; --k) {
      for (std::size_t s = sums; s-- > step;) ways[k][s] += ways[k - 1][s - step];
    }
  }
  // Twice the mean sum times the number of ranks, in whole numbers: chosen * all.
  const auto number = static_cast<std::int64_t>(ranks.size());
  const auto far = [&](std::int64_t s) { return std::abs(s * number - static_cast<std::int64_t>(chosen) * all); };
  double extreme = 0, total = 0;
  for (std::size_t s = 0; s < sums; ++s) {
    total += ways[chosen][s];
    if (far(static_cast<std::int64_t>(s)) >= far(sum)) extreme += ways[chosen][s];
  }
  return extreme / total;
}

}  // namespace

double mann_whitney_p(std::span<const double> one, std::span<const double> other) {
  if (one.empty() || other.empty()) return 1;
  const Ranks ranks = ranks_of(one, other);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < one.size(); ++i) sum += ranks.twice[i];
  if (ranks.twice.size() <= kMostExactlyRanked) return exact_p(ranks.twice, one.size(), sum);
  const auto n = static_cast<double>(one.size()), m = static_cast<double>(other.size()), all = n + m;
  const double u = static_cast<double>(sum) / 2 - n * (n + 1) / 2;
  const double variance = n * m / 12 * (all + 1 - ranks.ties / (all * (all - 1)));
  if (variance <= 0) return 1;
  const double z = std::max(0.0, std::abs(u - n * m / 2) - 0.5) / std::sqrt(variance);
  return std::erfc(z / std::sqrt(2.0));
}

}  // namespace hbmscope
