#include <array>
#include <atomic>
#include <stdexcept>
#include <string>

#include "kernels/hopper.cuh"

#include "kernels/tensor_map.hpp"

namespace hbmscope::kernels {
namespace {

/// The chip alone does not tell: a build for compute capability 9.0 without the "a" has none of its instructions.
__device__ int compiled_for_hopper = kHopper ? 1 : 0;

/// Asked for at run time, so that the program also starts where no driver is.
decltype(&cuTensorMapEncodeTiled) encode_function() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result);
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) {
    throw std::runtime_error("the driver has no cuTensorMapEncodeTiled: it is older than CUDA 12.0");
  }
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

}  // namespace

CUtensorMap panel_map(const Rows& t, int box_rows, bool asked_for_again) {
  static const auto encode = encode_function();
  const auto size = [](std::int64_t n) { return static_cast<cuuint64_t>(n); };
  const cuuint64_t sizes[] = {size(t.width), size(t.rows), size(t.heads), size(t.batch)};
  const cuuint64_t strides[] = {size(t.stride * 2), size(t.rows * t.stride * 2), size(t.heads * t.rows * t.stride * 2)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_rows), 1, 1}, steps[] = {1, 1, 1, 1};
  CUtensorMap map;
  const CUresult error =
      encode(&map, t.dtype == Dtype::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4,
             const_cast<void*>(t.base), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B,
             asked_for_again ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (error != CUDA_SUCCESS) {
    throw std::runtime_error("the driver takes no tensor map of " + std::to_string(t.rows) + " rows by " +
                             std::to_string(t.width) + " elements (error " + std::to_string(error) + ")");
  }
  return map;
}

bool on_hopper() {
  // Asked once for each device: the answer comes through the GPU, and a launch must not wait for what runs there.
  static std::array<std::atomic<int>, 64> answers{};  // 0: not asked yet, 1: no, 2: yes
  int device = 0, answer = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return false;
  std::atomic<int>& known = answers[static_cast<std::size_t>(device) % answers.size()];
  if (known == 0) {
    if (cudaMemcpyFromSymbol(&answer, compiled_for_hopper, sizeof answer) != cudaSuccess) return false;
    known = answer != 0 ? 2 : 1;
  }
  return known == 2;
}

}  // namespace hbmscope::kernels
