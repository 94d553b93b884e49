#include <dlfcn.h>

#include <array>
#include <string_view>

#include "device/clocks.hpp"

namespace hbmscope {
namespace {

// The few entry points in use, declared here because toolkits without the management library's header are common.
// Names, numbers and signatures as documented in the NVML API reference.
using Handle = void*;
constexpr int kSuccess = 0, kClockSm = 1, kClockMemory = 2;

struct Nvml {
  int (*init)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*by_bus_id)(const char*, Handle*) = nullptr;
  int (*clock_mhz)(Handle, int, unsigned*) = nullptr;
  int (*throttle_reasons)(Handle, unsigned long long*) = nullptr;
  std::string reason;  ///< why there is none
};

template <class F>
bool find(void* library, const char* name, F*& to) {
  to = reinterpret_cast<F*>(dlsym(library, name));
  return to != nullptr;
}

const Nvml& nvml() {
  static const Nvml opened = [] {
    Nvml n;
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);  // stays open for the process's life
    if (library == nullptr) {
      n.reason = "libnvidia-ml.so.1 of the driver is not there";
    } else if (!find(library, "nvmlInit_v2", n.init) ||
               !find(library, "nvmlSystemGetDriverVersion", n.driver_version) ||
               !find(library, "nvmlDeviceGetHandleByPciBusId_v2", n.by_bus_id) ||
               !find(library, "nvmlDeviceGetClockInfo", n.clock_mhz) ||
               !find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", n.throttle_reasons)) {
      n.reason = "the driver's management library lacks a function";
    } else if (const int error = n.init(); error != kSuccess) {
      n.reason = "the driver's management library does not start (error " + std::to_string(error) + ")";
    }
    return n;
  }();
  return opened;
}

struct ThrottleReason {
  unsigned long long bit;
  std::string_view words;
};
constexpr std::array<ThrottleReason, 7> kThrottleReasons{{{0x2, "application clocks"},
                                                          {0x4, "power cap"},
                                                          {0x8, "hardware slowdown"},
                                                          {0x20, "thermal slowdown (software)"},
                                                          {0x40, "thermal slowdown (hardware)"},
                                                          {0x80, "power brake"},
                                                          {0x100, "display clocks"}}};

std::optional<double> clock_hz(Handle device, int clock) {
  unsigned mhz = 0;
  if (nvml().clock_mhz(device, clock, &mhz) != kSuccess) return std::nullopt;
  return 1e6 * mhz;
}

}  // namespace

ClockState clock_state(const std::string& pci_bus_id) {
  ClockState state;
  state.reason = nvml().reason;
  if (!state.reason.empty()) return state;
  Handle device = nullptr;
  if (const int error = nvml().by_bus_id(pci_bus_id.c_str(), &device); error != kSuccess) {
    state.reason = "the driver's management library does not know the device (error " + std::to_string(error) + ")";
    return state;
  }
  state.sm_hz = clock_hz(device, kClockSm);
  state.memory_hz = clock_hz(device, kClockMemory);
  unsigned long long reasons = 0;
  if (nvml().throttle_reasons(device, &reasons) == kSuccess) {
    for (const ThrottleReason& r : kThrottleReasons) {
      if ((reasons & r.bit) != 0) state.throttled_by.emplace_back(r.words);
    }
  }
  return state;
}

std::optional<std::string> driver_version() {
  std::array<char, 96> text{};
  if (!nvml().reason.empty() || nvml().driver_version(text.data(), text.size()) != kSuccess) return std::nullopt;
  return std::string(text.data());
}

}  // namespace hbmscope
