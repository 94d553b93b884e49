#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "results/result.hpp"

/// Two sets of saved results, held against each other: what a change of the program, or of a machine, has done to them.
namespace hbmscope {

struct ComparisonLimits {
  double bytes = 0;        ///< relative; counts of bytes and FLOP by model and kernels
  double counters = 0.05;  ///< relative; the hardware's counters, which no two runs read alike
  double time = 0.03;      ///< relative change of the median time that counts at all
  double p = 0.01;         ///< and how improbable it must be in one and the same distribution
};

/// With fewer samples on a side no test can tell: the smallest p-value of 4 and 4 is 0.029.
inline constexpr std::size_t kLeastSamples = 5;

/// One algorithm of one result: what is matched.
struct ResultEntry {
  std::string where;  ///< file and line
  AttentionShape shape;
  std::string pass, gpu, device;
  std::optional<std::int64_t> l2_effective_bytes;
  std::string sweep_key;  ///< empty where it is no row of `sweep`
  ResultAlgorithm algorithm;
};

/// A side of a comparison: the entries of all its files, in their order.
struct ResultSet {
  std::vector<ResultEntry> entries;
  std::int64_t results = 0, failed = 0;  ///< failed rows of `sweep` have no entries
  void add(Result&& result);
};

enum class Verdict : std::uint8_t {
  different,  ///< bytes or FLOP are not what they were
  slower,
  faster,
  lost,    ///< known in the first, not in the second
  gained,  ///< known in the second only
};
constexpr std::string_view name(Verdict verdict) {
  constexpr std::array<std::string_view, 5> names{"different", "slower", "faster", "lost", "gained"};
  return names[static_cast<std::size_t>(verdict)];
}

/// A whole number of bytes or FLOP, a time in seconds, or nothing.
using Quantity = std::variant<std::monostate, std::int64_t, double>;

enum class Measure : std::uint8_t { bytes, flop, predicted_time, measured_time };

struct ResultDifference {
  std::size_t first, second;  ///< entries of the two sets
  Measure measure;
  std::string of;  ///< "sm_l2 closed_form, Q read", "matmul", "peak memory", ...
  Verdict verdict;
  Quantity was, is;
  std::optional<double> relative;  ///< is / was - 1
  std::optional<double> p;         ///< of a measured time with enough samples
  std::size_t samples_was = 0, samples_is = 0;
};

struct ResultDifferences {
  std::vector<std::pair<std::size_t, std::size_t>> matched;
  std::vector<ResultDifference> differences;
  std::vector<std::size_t> missing;  ///< entries of the first set that the second lacks
  std::vector<std::size_t> added;    ///< the other way round
  std::int64_t equal = 0;            ///< matched entries without a difference
  std::int64_t times_tested = 0, times_by_median = 0;

  [[nodiscard]] bool any(Verdict verdict) const;
};

/// Of one algorithm, over all entries that both sets have: its bytes of predictions that both know, and its times.
struct AlgorithmTotals {
  std::string algorithm;
  std::int64_t matched = 0, equal = 0;
  struct Sum {
    std::optional<std::int64_t> was, is;  ///< nothing where no entry has them on both sides, or beyond 64 bits
  };
  Sum hbm, sm_l2;  ///< simulated and by closed form
  std::int64_t times = 0;
  std::optional<double> time_ratio;  ///< geometric mean of is / was over the measured medians
};
/// In the order in which the first set names them.
std::vector<AlgorithmTotals> totals_by_algorithm(const ResultSet& first, const ResultSet& second,
                                                 const ResultDifferences& differences);

/// Entries match by shape, mask, dtype, pass, GPU, algorithm and plan; of several alike, those of one L2 and one row of
/// a sweep first, then in their order.
ResultDifferences compare_results(const ResultSet& first, const ResultSet& second, const ComparisonLimits& limits);

}  // namespace hbmscope
