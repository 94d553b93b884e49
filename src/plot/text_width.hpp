#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hbmscope::plot {

/// Width of a text in pixels at a font size, as DejaVu Sans has it: the widest of the fonts that kFonts names, so that
/// another one leaves more room, never less. A bold one takes about a tenth more.
double text_width(std::string_view text, double size, bool bold = false);

inline constexpr std::string_view kFonts = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

/// The text in lines of at most `width` pixels, broken at blanks; a word that is longer is broken inside.
std::vector<std::string> wrapped(std::string_view text, double size, double width);

/// The text, cut with an ellipsis where it is wider.
std::string shortened(std::string_view text, double size, double width);

}  // namespace hbmscope::plot
