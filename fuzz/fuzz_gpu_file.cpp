#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "core/error.hpp"
#include "scenario/embedded.hpp"
#include "scenario/gpu_file.hpp"

/// The target parses texts of its own only.
std::span<const hbmscope::EmbeddedFile> hbmscope::embedded_gpus() {
  return {};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const hbmscope::GpuSpec gpu =
        hbmscope::parse_gpu(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    if (gpu.num_sms < 1 || gpu.l2_effective_bytes > gpu.l2_bytes || !(gpu.hbm_bandwidth.value >= 1e9)) std::abort();
  } catch (const hbmscope::Error& error) {
    if (error.kind() != hbmscope::ErrorKind::data) std::abort();
    (void)nlohmann::json(error.what() + error.hint()).dump();  // throws on broken UTF-8
  }
  return 0;
}
