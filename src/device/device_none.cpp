#include "core/error.hpp"
#include "device/device.hpp"

namespace hbmscope {

DeviceStatus device_status(int) {
  return {.present = false, .name = "", .reason = "this build has no CUDA device support"};
}

std::unique_ptr<Device> open_device(int ordinal) {
  throw Error(ErrorKind::device, "no GPU to run on: " + device_status(ordinal).reason,
              "build with CUDA 12 or 13 (nvcc in PATH) where there is a GPU; hbmscope run predicts without one");
}

std::unique_ptr<ProbeKernel> make_probe(Device&, Probe, std::string& reason) {
  reason = device_status(0).reason;
  return nullptr;
}

std::vector<double> measure_sm_clocks(Device&) {
  return {};
}

namespace kernels {
std::span<const Pipeline* const> pipelines() {
  return {};
}
std::span<const Pipeline* const> candidates() {
  return {};
}
}  // namespace kernels

ProfilerRange::ProfilerRange(const std::string&, Bytes) {}
ProfilerRange::~ProfilerRange() = default;

}  // namespace hbmscope
