#pragma once
#include <map>
#include <vector>

#include "measure/measure.hpp"

namespace hbmscope {

/// The tensors of one shape on the device, and what is done with them.
class Bench {
 public:
  Bench(Device& device, const MeasureRequest& request);

  Device& device() { return device_; }
  /// Launches one stage under a profiler's range.
  void launch(const MeasureRequest::Item& item, std::size_t stage, bool counted,
              kernels::KernelResources* resources = nullptr);
  /// All stages, in order.
  void launch(const MeasureRequest::Item& item, bool counted = false);
  /// Fills O, LSE and the pipeline's temporaries with NaN, so that what nobody writes shows.
  void poison(const MeasureRequest::Item& item);
  /// Reads a clean buffer twice the size of L2 with ordinary loads: dirty lines go to HBM and everything else leaves.
  void sweep_l2();

  /// Takes memory for a pipeline's temporaries; gives back that of the one before.
  void prepare(const MeasureRequest::Item& item);
  [[nodiscard]] const std::vector<kernels::Stage>& stages() const { return stages_; }
  [[nodiscard]] Bytes memory_taken() const { return memory_taken_; }

  [[nodiscard]] void* tensor(Tensor t) const { return tensors_.at(t).data(); }
  [[nodiscard]] std::int64_t elements(Tensor t) const;
  /// Per tensor, read then written, of the counted launches since the last call.
  Traffic take_kernel_counts();
  /// Sampled rows of O and, if the pipeline writes it, LSE.
  AttentionResult download(const RowSample& sample, bool with_lse);

  static constexpr std::int64_t kSweepFactor = 2;  ///< times L2

 private:
  Device& device_;
  const MeasureRequest& request_;
  std::map<Tensor, DeviceBuffer> tensors_;
  std::map<Tensor, DeviceBuffer> temporaries_;
  DeviceBuffer counters_;
  DeviceBuffer sweep_;
  DeviceBuffer sweep_sum_;
  std::vector<kernels::Stage> stages_;
  Bytes free_before_, memory_taken_;
};

/// Bytes of Q, K, V or O of the shape, or of LSE.
Bytes tensor_bytes(const AttentionShape& shape, Tensor tensor);

}  // namespace hbmscope
