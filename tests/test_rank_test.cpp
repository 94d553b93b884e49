// The Mann-Whitney U test against its definition.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "measure/rank_test.hpp"
#include "random_shapes.hpp"

using namespace hbmscope;
using hbmscope::testing::Draw;

namespace {

/// The p-value by trying out every way to choose which of the values are the first sample.
double p_by_trying(const std::vector<double>& one, const std::vector<double>& other) {
  std::vector<double> all = one;
  all.insert(all.end(), other.begin(), other.end());
  // U as it is defined: pairs that the first sample wins, half of each draw.
  const auto distance = [&](unsigned chosen) {
    double u = 0, pairs = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((chosen >> i & 1) == 0) continue;
      for (std::size_t j = 0; j < all.size(); ++j) {
        if ((chosen >> j & 1) != 0) continue;
        u += all[i] > all[j] ? 1 : all[i] == all[j] ? 0.5 : 0;
        ++pairs;
      }
    }
    return std::abs(u - pairs / 2);
  };
  const double mine = distance((1u << one.size()) - 1);
  double extreme = 0, ways = 0;
  for (unsigned chosen = 0; chosen < 1u << all.size(); ++chosen) {
    if (static_cast<std::size_t>(__builtin_popcount(chosen)) != one.size()) continue;
    ++ways;
    if (distance(chosen) >= mine - 1e-9) ++extreme;
  }
  return extreme / ways;
}

}  // namespace

TEST_CASE("the Mann-Whitney p-value is that of trying out every choice, ties or not") {
  Draw draw(9);
  for (int i = 0; i < 200; ++i) {
    std::vector<double> one, other;
    const std::int64_t different_values = draw.one_of<std::int64_t>({2, 4, 1000});
    for (std::int64_t n = draw.between(1, 6); n > 0; --n)
      one.push_back(static_cast<double>(draw.between(1, different_values)));
    for (std::int64_t n = draw.between(1, 6); n > 0; --n)
      other.push_back(static_cast<double>(draw.between(1, different_values)) + static_cast<double>(draw.between(0, 1)));
    CHECK(mann_whitney_p(one, other) == doctest::Approx(p_by_trying(one, other)).epsilon(1e-9));
    CHECK(mann_whitney_p(one, other) == doctest::Approx(mann_whitney_p(other, one)).epsilon(1e-9));
  }
  // All of five below all of five: 2 of the 252 choices.
  CHECK(mann_whitney_p(std::vector<double>{1, 2, 3, 4, 5}, std::vector<double>{6, 7, 8, 9, 10}) ==
        doctest::Approx(2.0 / 252));
  CHECK(mann_whitney_p(std::vector<double>{}, std::vector<double>{1}) == 1);
  CHECK(mann_whitney_p(std::vector<double>(30, 2.0), std::vector<double>(30, 2.0)) == 1);
}

TEST_CASE("of samples of one distribution one in a hundred gets a p below 0.01, exactly or nearly") {
  Draw draw(10);
  for (const std::size_t n :
       {std::size_t{15}, std::size_t{40}}) {  // 30 values are ranked exactly, 80 by the approximation
    int below = 0;
    constexpr int kTries = 2000;
    for (int i = 0; i < kTries; ++i) {
      std::vector<double> one, other;
      for (std::size_t k = 0; k < n; ++k) {
        one.push_back(static_cast<double>(draw.between(0, 1'000'000)));
        other.push_back(static_cast<double>(draw.between(0, 1'000'000)));
      }
      below += mann_whitney_p(one, other) < 0.01 ? 1 : 0;
    }
    CAPTURE(n);
    CHECK(below > kTries / 400);
    CHECK(below < kTries / 50);
  }
}
