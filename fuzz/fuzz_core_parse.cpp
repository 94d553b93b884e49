#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "core/parse.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

template <class Check>
void attempt(Check check) {
  try {
    check();
  } catch (const hbmscope::Error& error) {
    require(error.kind() == hbmscope::ErrorKind::usage && !error.hint().empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  attempt([&] { require(hbmscope::parse_length(text, "--option") >= 0); });
  attempt([&] { require(hbmscope::parse_bytes(text, "--option").value() >= 0); });
  attempt([&] { require(std::isfinite(hbmscope::parse_real(text, "--option"))); });
  attempt([&] { (void)hbmscope::parse_integer(text, "--option"); });
  return 0;
}
