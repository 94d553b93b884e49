#pragma once
#include <span>

#include "scenario/embedded.hpp"

namespace hbmscope {

/// The files docs/lessons/*.md, by name.
std::span<const EmbeddedFile> embedded_lessons();

}  // namespace hbmscope
