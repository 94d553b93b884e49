#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plot/pictures.hpp"

/// What several pictures need.
namespace hbmscope::plot {

/// "naive at HBM, measured": what a series of bytes is called.
std::string boundary_name(std::string_view boundary);  ///< "HBM", "SM-L2", "compulsory"

/// The predicted entry of a boundary: closed forms at SM-L2, the simulation at HBM. Null without bytes.
const ResultTraffic* predicted(const ResultAlgorithm& a, std::string_view boundary);
/// The measured one: the hardware's counters, else the kernel's own. Null without bytes.
const ResultTraffic* measured(const ResultAlgorithm& a, std::string_view boundary);
/// Why there is no measured entry with bytes: the file's own reason, or that it has none.
std::string why_not_measured(const Result& result);

/// Names of algorithms in the order of their first appearance.
std::vector<std::string> algorithm_names(const PlotData& data, const std::vector<std::size_t>& results);

/// A chart with its name, question, and what `data` says about all of its pictures; `commands` are those of `results`.
Chart new_chart(std::string_view picture, const PlotData& data, const std::vector<std::size_t>& results);
std::vector<std::size_t> all_results(const PlotData& data);

/// Why an algorithm has no bytes through HBM: in the file's words, or what would have given them.
std::string why_no_hbm(const Result& result);

/// The exponent of a line, as its legend says it: "N^1.99 (95 %: 1.97 to 2.01)"; empty where two points are missing.
/// Adds a row to `fits` for the table of exponents.
std::string exponent_note(const Series& series, std::string_view x_symbol);
std::string_view symbol_of(std::string_view field);  ///< "N" for seqlen, "d" for head_dim

/// Where a result lies along the lines, and what lies there: bytes, or those of one head.
Number x_of(const PlotData& data, const Grouped& by, std::size_t result);
Number y_of(const PlotData& data, const Grouped& by, std::size_t result, std::int64_t bytes);

/// A column for x and one for each series; rows by x, as far as the series share it.
Table table_of_series(const Chart& chart);
/// A row a mark: series, label, x, y.
Table table_of_marks(const Chart& chart);

/// Shape and colour of an algorithm's marks.
Style algorithm_style(std::string_view algorithm);

}  // namespace hbmscope::plot
