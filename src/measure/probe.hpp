#pragma once
#include "measure/measure.hpp"

namespace hbmscope {

/// One roof of this GPU, measured.
struct Roof {
  std::string_view name;  ///< "copy", "read", "write", "l2_read", "mma_sync", "wgmma", "exp2"
  std::string_view unit;  ///< "byte_per_s", "flop_per_s" or "exp_per_s"
  Known<double> rate;     ///< median
  double spread = 0;      ///< interquartile range over median
};
struct ProbeResult {
  DeviceProperties device;
  std::vector<Roof> roofs;
  Known<std::vector<double>> sm_clocks;  ///< Hz, of each SM in the first milliseconds of tensor work
  Known<CounterCheck> counters;
  ClockState clocks;  ///< right after the last roof
};

/// Measures the roofs and checks the counters; takes a few seconds.
ProbeResult probe(Device& device, const std::function<void(const std::string&)>& progress = {});

}  // namespace hbmscope
