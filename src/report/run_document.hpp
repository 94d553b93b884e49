#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "analysis/run.hpp"
#include "report/document.hpp"
#include "report/text_chart.hpp"

namespace hbmscope {

struct RunView {
  bool tensors = false;                  ///< bytes of each tensor
  bool explain = false;                  ///< under each table what its columns mean and how its figures came about
  std::optional<ChartStyle> chart = {};  ///< bars and a roofline, if wanted
};

/// The report of `hbmscope run`: the answer first, then traffic by boundary, time, and what else there is to know.
Document run_document(const RunResult& result, const RunView& view);

/// "forward, batch 1, 1 head, N 8,192, d 128, fp16, no mask".
std::string shape_words(const AttentionShape& shape, std::string_view pass);

/// The papers' orders of elements, over N, or over Nq and Nk where queries and keys differ in number.
std::string_view standard_order(const AttentionShape& shape);
std::string_view flash_order(const AttentionShape& shape);

/// A formula over N, Nq, Nk, d, e, S, T_c, Br, Bc, bm, bn with the shape's numbers in their place.
std::string filled_in(std::string_view formula, const AttentionShape& shape, const TilePlan& plan);

}  // namespace hbmscope
