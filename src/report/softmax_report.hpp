#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/online_softmax.hpp"
#include "report/document.hpp"

namespace hbmscope {

/// All that `hbmscope softmax` has to show.
struct SoftmaxReport {
  SoftmaxInput input;
  Precision precision;   ///< none: fp64
  SoftmaxResult result;  ///< in that precision
  SoftmaxResult exact;   ///< in fp64
};

/// For a reader with pencil and paper: three decimals.
Document softmax_document(const SoftmaxReport& report);
/// Unrounded. A vector is a list, and a number where the values are numbers; -infinity is null, and `reason` says so.
nlohmann::ordered_json softmax_to_json(const SoftmaxReport& report, const std::vector<std::string>& argv);
/// One row a form and block, then one a result; unrounded (RFC 4180). Cells that a form does not have are empty.
std::string softmax_to_csv(const SoftmaxReport& report);

}  // namespace hbmscope
