#pragma once
#include <optional>
#include <string>

#include "device/device.hpp"

namespace hbmscope {

/// From the driver's management library (NVML), found at run time.
ClockState clock_state(const std::string& pci_bus_id);
/// "580.159.04", where that library tells.
std::optional<std::string> driver_version();

}  // namespace hbmscope
