#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.hpp"
#include "scenario/json_reader.hpp"

namespace {

/// Our parser refuses these where nlohmann's does not.
bool is_own_rule(std::string_view message) {
  for (const std::string_view rule :
       {"stands in this object twice", "deep in one another", "beyond the range of a double", "\\x00"}) {
    if (message.find(rule) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

/// Differential: whatever is accepted, nlohmann's parser reads to the same value; whatever is refused, by another rule
/// than our own ones, it refuses too.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const nlohmann::json theirs = nlohmann::json::parse(text, nullptr, false);
  try {
    const nlohmann::json ours = hbmscope::parse_json(text, "fuzz");
    if (theirs.is_discarded() || ours != theirs) std::abort();
  } catch (const hbmscope::Error& error) {
    const bool is_expected = theirs.is_discarded() || is_own_rule(error.what());
    if (!is_expected || error.kind() != hbmscope::ErrorKind::data || error.hint().empty()) std::abort();
    (void)nlohmann::json(error.what()).dump();  // throws on broken UTF-8
  }
  return 0;
}
