#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/known.hpp"
#include "device/device.hpp"
#include "device/hw_counters.hpp"
#include "model/traffic.hpp"
#include "simulate/numerics/numerics.hpp"

/// Runs pipelines on a device: verified first, then counted, then timed. Nothing is formatted here.
namespace hbmscope {

struct MeasureRequest {
  AttentionShape shape;
  struct Item {
    const kernels::Pipeline* pipeline;
    TilePlan plan;                   ///< from Pipeline::plan
    std::vector<Bytes> stage_bytes;  ///< predicted, for the profiler's ranges; empty: none
    std::string unsupported{};       ///< why it cannot run; it is listed all the same
  };
  std::vector<Item> items;
  std::uint64_t seed = 1;
  std::optional<int> repeats;  ///< of the timing; by default as many as a third of a second holds, 10 to 200
  bool l2_warm = false;        ///< timed and counted right after the same work, instead of after a sweep of L2
  bool kernel_counters = true;
  bool hw_counters = true;
  bool timing = true;
};

/// Bytes across one boundary as the hardware counts them; it does not know tensors.
struct HwTraffic {
  Known<Bytes> read, write;
};
struct HwStage {
  HwTraffic sm_l2, l2_hbm;
  Known<Bytes> l2_lookup;  ///< read sectors that L2 looked up x 32: after merging, never compared
  Known<Count> tensor_instructions;
  Known<Seconds> gpu_time;
  Known<double> tensor_instructions_per_cycle;  ///< a SM
  Known<double> sm_clock_least, sm_clock_most;  ///< Hz, of the slowest and of the fastest SM
};

struct StageMeasurement {
  std::string_view name;
  Known<Traffic> kernel_counted;  ///< sm_l2, by the kernel itself
  HwStage hw;
  Known<Seconds> median;
  Known<kernels::KernelResources> resources;  ///< of the timed kernel
};

struct TimeSamples {
  std::vector<double> seconds;  ///< of the whole pipeline, in the order in which they were taken
  double median, least, most;
  double spread;  ///< interquartile range over median
  bool cold_l2;
  ClockState clocks;  ///< right after the last sample
};

struct PipelineMeasurement {
  const kernels::Pipeline* pipeline;
  TilePlan plan;
  Known<ForeignExactness> exactness;
  Known<bool> bit_identical;  ///< two runs gave the same O
  std::vector<StageMeasurement> stages;
  Known<Traffic> kernel_counted;
  HwStage hw;  ///< sums over the stages, and what the drain after them brought to HBM
  Known<TimeSamples> time;
  Known<Seconds> launch_gap;  ///< of the pipeline's time, what no kernel was running in
  Known<Bytes> peak;          ///< device memory taken, to the allocator's granularity
};

/// The counters held against kernels of known bytes.
struct CounterCheck {
  struct Row {
    Yardstick yardstick;
    Bytes expected_read, expected_write;
    HwTraffic counted;  ///< at l2_hbm, drained, baseline subtracted
  };
  std::vector<Row> rows;
  Bytes baseline_read, baseline_write;  ///< of an empty range and the drain after it
  HwMetricPlan metrics;
};

struct DeviceMeasurement {
  DeviceProperties device;
  Known<CounterCheck> counters;  ///< missing: why the hardware's counters say nothing; failed: reads off by over 1 %
  std::vector<PipelineMeasurement> pipelines;
};

/// Bytes of device memory that the request takes: tensors, temporaries of the largest pipeline, and the sweep buffer.
Bytes memory_needed(const MeasureRequest& request, const DeviceProperties& device);

/// `progress` is told what is being done. Throws an Error (kind device) when the memory does not suffice, (kind output)
/// when the GPU fails; a pipeline that fails its check has no time and says so.
DeviceMeasurement measure(Device& device, const MeasureRequest& request,
                          const std::function<void(const std::string&)>& progress = {});

/// How measure_in_turns takes times: in each round every item runs a few times to warm up and then `runs` times, after
/// a pause, so that none meets a cooler GPU than the others.
struct TurnsOfTiming {
  int rounds = 3, warm_up = 3, runs = 9;
  double pause_s = 0.05;
};
/// Verifies the items as measure() does and times those that are right against each other; counts nothing.
std::vector<PipelineMeasurement> measure_in_turns(Device& device, const MeasureRequest& request,
                                                  const TurnsOfTiming& turns = {});

/// Runs each item once under the profiler's ranges, for Nsight to look at; results are neither checked nor timed.
void run_once(Device& device, const MeasureRequest& request);

}  // namespace hbmscope
