#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/result_differences.hpp"
#include "report/document.hpp"

namespace hbmscope {

/// What `hbmscope compare` has to say, before anybody decides how it looks.
struct ComparisonReport {
  std::string first_name, second_name;   ///< as they were given
  std::vector<std::string> passed_over;  ///< files of the folders that are no results
  const ResultSet &first, &second;
  const ResultDifferences& differences;
  ComparisonLimits limits;
  bool failed;  ///< as the exit code tells
};

/// In text, at most so many rows of a kind; JSON and CSV hold all.
inline constexpr std::size_t kMostRowsShown = 60;

/// The answer in a sentence, what changed by shape, and what has no counterpart.
Document compare_document(const ComparisonReport& report);
/// docs/schema/compare.schema.json.
nlohmann::ordered_json compare_to_json(const ComparisonReport& report, const std::vector<std::string>& argv);
/// A row a difference, and one an entry without a counterpart.
std::string compare_to_csv(const ComparisonReport& report);

}  // namespace hbmscope
