#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.hpp"
#include "scenario/batch_line.hpp"

/// A line that is accepted survives being written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const hbmscope::BatchLine line =
        hbmscope::parse_batch_line(std::string_view(reinterpret_cast<const char*>(data), size));
    if (hbmscope::shape_from_json(nlohmann::json(hbmscope::shape_to_json(line.shape)), "", "/shape") != line.shape)
      std::abort();
    if (hbmscope::plan_from_json(line.plan_json, "", "/plan") != line.plan) std::abort();
  } catch (const hbmscope::Error& error) {
    if (error.kind() != hbmscope::ErrorKind::data) std::abort();
    (void)nlohmann::json(error.what() + error.hint()).dump();  // throws on broken UTF-8
  }
  return 0;
}
