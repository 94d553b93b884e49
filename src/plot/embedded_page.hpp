#pragma once
#include <span>

#include "scenario/embedded.hpp"

namespace hbmscope::plot {

/// The files src/plot/page/*.css and *.js, by their whole name.
std::span<const EmbeddedFile> embedded_page_files();

}  // namespace hbmscope::plot
