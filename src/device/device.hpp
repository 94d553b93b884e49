#pragma once
#include <string>

namespace hbmscope {

/// Is there a CUDA device this program can use?
struct DeviceStatus {
  bool present = false;
  std::string name;    ///< the device's own name; empty when not present
  std::string reason;  ///< why not, as a clause a report can quote; empty when present
};

/// Looks for a device. A machine without one, or without a driver, is not an error: the answer carries the reason.
/// Which implementation answers is chosen when the program is linked, so callers need no preprocessor switch.
DeviceStatus device_status();

}  // namespace hbmscope
