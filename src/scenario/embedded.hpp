#pragma once
#include <span>
#include <string_view>

namespace hbmscope {

/// A data file that the build put into the program, byte for byte.
struct EmbeddedFile {
  std::string_view name;  ///< the file's name without ".json" or ".md"
  std::string_view text;
};

/// The files scenarios/*.json, by name.
std::span<const EmbeddedFile> embedded_scenarios();
/// The files scenarios/gpu/*.json, by name.
std::span<const EmbeddedFile> embedded_gpus();

}  // namespace hbmscope
