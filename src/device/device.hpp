#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "kernels/attention.hpp"

/// A CUDA device as the rooms to the right see it: blocking calls, no CUDA type. Which implementation answers is chosen
/// when the program is linked, so callers need no preprocessor switch.
namespace hbmscope {

/// Is there a CUDA device this program can use?
struct DeviceStatus {
  bool present = false;
  std::string name;    ///< the device's own name; empty when not present
  std::string reason;  ///< why not, as a clause a report can quote; empty when present
};

/// Looks for device `ordinal`. A machine without one, or without a driver, is not an error: the answer carries the
/// reason.
DeviceStatus device_status(int ordinal = 0);

struct DeviceProperties {
  std::string name;
  int ordinal = 0;
  int compute_major = 0, compute_minor = 0;
  std::int64_t num_sms = 0;
  Bytes l2, smem_per_block, memory;
  std::string driver, runtime;  ///< "580.159.04", "13.0"
  std::string bus_id;
};

/// What the clocks and the power limit did, as far as the driver's library tells.
struct ClockState {
  std::optional<double> sm_hz, memory_hz;
  std::vector<std::string>
      throttled_by;    ///< "power cap", "thermal slowdown", ...; empty: nothing, if the clocks are known
  std::string reason;  ///< why nothing is known; empty when it is
};

/// Kernels of known bytes.
enum class Yardstick : std::uint8_t { copy, read, fill };

constexpr std::string_view name(Yardstick yardstick) {
  constexpr std::array<std::string_view, 3> names{"copy", "read", "fill"};
  return names[static_cast<std::size_t>(yardstick)];
}

/// Calls throw an Error (kind output) when the GPU fails, with the CUDA error's name and the place.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceProperties& properties() const = 0;
  [[nodiscard]] virtual Bytes free_memory() const = 0;
  [[nodiscard]] virtual ClockState clocks() const = 0;

  virtual void* allocate(Bytes) = 0;
  virtual void release(void*) noexcept = 0;
  virtual void upload(void* to, const void* from, Bytes) = 0;
  virtual void download(void* to, const void* from, Bytes) = 0;
  virtual void fill_bytes(void* to, int byte, Bytes) = 0;
  virtual void synchronize() = 0;
  [[nodiscard]] virtual CUstream_st* stream() const = 0;

  /// Starts work and returns; one stream, in order.
  virtual void launch(const kernels::Stage&, kernels::Call) = 0;
  virtual void yardstick(Yardstick, void* to, const void* from, Bytes) = 0;
  /// Q, K or V of `seed`, element for element what RandomInputs gives.
  virtual void random_inputs(void* to, Tensor, const AttentionShape&, std::uint64_t seed) = 0;

  /// Runs `work` in order and returns the seconds on the GPU from the end of one to the end of the next.
  virtual std::vector<double> time(std::span<const std::function<void()>> work) = 0;
  struct Contents {
    std::int64_t nonfinite;  ///< NaN and infinities
    std::uint64_t checksum;  ///< of the bits; the same for the same elements in any order of summation
  };
  virtual Contents look(const void* at, std::int64_t elements, Dtype) = 0;
};

/// Throws an Error (kind device) with the reason where there is none.
std::unique_ptr<Device> open_device(int ordinal);

/// Kernels that do one thing only, for the roofs of `gpu probe`.
enum class Probe : std::uint8_t { l2_read, mma_sync, wgmma, exp2 };

/// One such kernel with its operands on the device, on random data where data matters.
class ProbeKernel {
 public:
  virtual ~ProbeKernel() = default;
  /// Starts one launch that goes over its work `times` times.
  virtual void launch(std::int64_t times) = 0;
  /// Bytes (l2_read), FLOPs (mma_sync, wgmma) or exponentials (exp2) of such a launch.
  [[nodiscard]] virtual double work(std::int64_t times) const = 0;
  /// What is wrong with the result of the last launch, of `times`; empty where it is right.
  virtual std::string check(std::int64_t times) = 0;
};
/// Nothing, and `reason` says why, where the device has no such unit.
std::unique_ptr<ProbeKernel> make_probe(Device&, Probe, std::string& reason);

/// Hz of each SM, by its number, over some milliseconds of tensor work on all of them; 0 where one had none.
std::vector<double> measure_sm_clocks(Device&);

/// Device memory that is given back at the end of its scope.
class DeviceBuffer {
 public:
  DeviceBuffer(Device& device, Bytes size) : device_(&device), size_(size), data_(device.allocate(size)) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : device_(other.device_), size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;
  ~DeviceBuffer() {
    if (data_ != nullptr) device_->release(data_);
  }
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  Device* device_;
  Bytes size_;
  void* data_;
};

/// A range that profilers show, on the thread that launches: domain "hbmscope", payload = predicted bytes. Nothing
/// where the build has no NVTX.
class ProfilerRange {
 public:
  ProfilerRange(const std::string& name, Bytes payload);
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
  ~ProfilerRange();
};

}  // namespace hbmscope
