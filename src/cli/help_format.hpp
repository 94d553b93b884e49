#pragma once
#include <CLI/CLI.hpp>

namespace hbmscope {

/// No line of an option's help is wider than this.
inline constexpr std::size_t kHelpWidth = 100;

/// Wraps the help of a command's options, and of those of its own commands that are added later.
void wrap_help(CLI::App& command);

}  // namespace hbmscope
