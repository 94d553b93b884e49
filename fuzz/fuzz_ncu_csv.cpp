#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.hpp"
#include "device/ncu_csv.hpp"

namespace {

void check(const hbmscope::Error& error) {
  if (error.kind() != hbmscope::ErrorKind::data) std::abort();
  (void)nlohmann::json(error.what() + error.hint()).dump();  // throws on broken UTF-8
}

}  // namespace

/// A table that is accepted has launches whose every metric is a finite number or says why it is none.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const hbmscope::NcuFile file =
        hbmscope::parse_ncu_csv(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    if (file.kernels.empty()) std::abort();
    for (const hbmscope::NcuKernel& kernel : file.kernels) {
      (void)nlohmann::json(kernel.name).dump();
      for (const auto& [name, value] : kernel.metrics) {
        if (value.value.has_value() != value.trouble.empty()) std::abort();
        if (value.value && !std::isfinite(*value.value)) std::abort();
        if (value.exact && std::abs(*value.value - static_cast<double>(*value.exact)) > 1024) std::abort();
      }
      for (const hbmscope::HwQuantity quantity : hbmscope::kHwQuantities) {
        try {
          const auto reading = hbmscope::read_quantity(kernel, quantity, "fuzz");
          if (reading && (reading->value < 0 || reading->count < 0)) std::abort();
        } catch (const hbmscope::Error& error) {
          check(error);
        }
      }
    }
  } catch (const hbmscope::Error& error) {
    check(error);
  }
  return 0;
}
