#include <atomic>

#include "core/error.hpp"
#include "kernels/common.cuh"

namespace hbmscope::kernels {

unsigned grid_of(std::int64_t ctas) {
  if (ctas > INT32_MAX) {
    throw Error(ErrorKind::usage, "a grid of " + std::to_string(ctas) + " CTAs is beyond the 2^31 - 1 of one launch",
                "take fewer heads or a smaller batch");
  }
  return static_cast<unsigned>(ctas);
}

std::int64_t num_sms() {
  int device = 0, sms = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) {
    check_launch("of any name");
  }
  return sms;
}

void check_launch(const char* what) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw Error(ErrorKind::output,
              std::string("the GPU kernel ") + what + " did not start: " + cudaGetErrorName(error) + ", " +
                  cudaGetErrorString(error),
              "the numbers of this run are void; check the GPU with `hbmscope gpu probe`");
}

namespace {
__device__ unsigned draw_counters[64];
}

unsigned* draw_counter(const char* what) {
  static std::atomic<unsigned> launches{0};
  void* counters = nullptr;
  if (cudaGetSymbolAddress(&counters, draw_counters) != cudaSuccess) check_launch(what);
  return static_cast<unsigned*>(counters) + launches++ % 64;
}

void allow_smem(const Call& call, const void* kernel, std::size_t bytes, const char* what) {
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)) !=
      cudaSuccess) {
    check_launch(what);
  }
  if (call.resources == nullptr) return;
  cudaFuncAttributes compiled{};
  if (cudaFuncGetAttributes(&compiled, kernel) != cudaSuccess) check_launch(what);
  *call.resources = {compiled.numRegs, static_cast<std::int64_t>(compiled.sharedSizeBytes + bytes),
                     static_cast<std::int64_t>(compiled.localSizeBytes)};
}

}  // namespace hbmscope::kernels
