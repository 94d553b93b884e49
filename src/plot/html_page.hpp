#pragma once
#include <string>

#include "plot/plot_data.hpp"

namespace hbmscope::plot {

struct PageOptions {
  std::string title;  ///< empty: the program's own
  /// A fragment of HTML that stands behind the pictures, such as an animation of tiles; nothing where it is empty. It
  /// is the program's own and is not escaped.
  std::string appendix;
};

/// One HTML file with every picture that the data can give, each with its numbers in a table; of the others it says why
/// not. Its style sheet and script are inside, and it asks the network for nothing.
std::string to_html_page(const PlotData& data, const PageOptions& options);

}  // namespace hbmscope::plot
