#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "device/device.hpp"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // what CTest takes for "skipped"
  const hbmscope::DeviceStatus status = hbmscope::device_status(0);
  if (!status.present) {
    std::printf("skipped: %s\n", status.reason.c_str());
    return kSkipped;
  }
  return doctest::Context(argc, argv).run();
}
