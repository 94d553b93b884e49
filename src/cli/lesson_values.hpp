#pragma once
#include <CLI/CLI.hpp>

namespace hbmscope {

/// `lesson values`: the numbers of the worked examples.
void add_lesson_values(CLI::App& lesson);

}  // namespace hbmscope
