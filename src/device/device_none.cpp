#include "device/device.hpp"

namespace hbmscope {

DeviceStatus device_status() {
  return {.present = false, .name = "", .reason = "this build has no CUDA device support"};
}

}  // namespace hbmscope
