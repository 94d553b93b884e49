#pragma once
#include <string>

#include "plot/chart.hpp"

namespace hbmscope::plot {

inline constexpr double kWidth = 960;  ///< of every picture, in pixels at 100 %

/// A file of its own: with a white ground, the question as its heading, and boundary, units and command below.
std::string to_svg(const Chart& chart, std::string_view title);

/// The same drawing for a page that says all that around it. `id` is unique in the page.
std::string to_inline_svg(const Chart& chart, std::string_view id);

/// "x: length (k = 1024); y: bytes (kB, MB: powers of 1000)".
std::string units_of(const Chart& chart);
/// The series and what stands under their names, as a sentence.
std::string described(const Chart& chart);

}  // namespace hbmscope::plot
