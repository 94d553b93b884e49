#pragma once
#include <string>
#include <string_view>

namespace hbmscope::plot {

/// Somebody else's text as UTF-8 that XML and JSON may hold: a byte or a character that they forbid becomes U+FFFD, a
/// line break or a tab a blank.
std::string clean(std::string_view text);

/// clean() text for the inside of an element or of a quoted attribute, in XML and in HTML.
std::string escaped(std::string_view text);

}  // namespace hbmscope::plot
