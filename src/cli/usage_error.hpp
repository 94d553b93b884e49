#pragma once
#include <CLI/CLI.hpp>

#include "core/error.hpp"

namespace hbmscope {

/// What is wrong with a command line that `app` could not parse, in this program's own words: it names the command and
/// the nearest option or command there is.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

/// Refuses an empty text as the value of any option, of any command: `--gpu "$GPU"` with GPU unset must not quietly
/// mean the default.
void refuse_empty_values(CLI::App& app);

}  // namespace hbmscope
