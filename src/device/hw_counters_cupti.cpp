// The counters through CUPTI's Range Profiler: user ranges, user replay, one pass, so that each range runs exactly
// once. Compiles to nothing where a build has no CUPTI; hw_counters_none.cpp stands in there.
#ifdef HBMSCOPE_HAVE_CUPTI
#include <cuda_runtime_api.h>

#include <atomic>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "device/cupti_host.hpp"
#include "device/cupti_session.hpp"
#include "device/hw_counters.hpp"

namespace hbmscope {

namespace {

using cupti::Host;
using cupti::Image;
using cupti::Names;
using cupti::Refused;
using cupti::Session;

std::string list_of(std::span<const std::string_view> names) {
  std::string list;
  for (const std::string_view name : names) list.append(list.empty() ? "" : ", ").append(name);
  return list;
}

HwMetricPlan nothing_of(const std::string& chip, const std::string& reason) {
  HwMetricPlan plan;
  plan.chip = chip;
  plan.refusal = reason;
  plan.reason.values.fill(reason);
  return plan;
}

/// Adds one quantity after the other as long as one pass holds them. Each try has a host object of its own, which adds
/// one new name to names that are known to be good.
HwMetricPlan choose_metrics(const std::string& chip, const Image& availability) {
  HwMetricPlan plan;
  plan.chip = chip;
  Names kept;
  for (const HwQuantity quantity : kHwQuantities) {
    const std::span<const std::string_view> candidates = metric_candidates(quantity);
    plan.reason[quantity] = "chip " + chip + " has no " + list_of(candidates);
    for (const std::string_view candidate : candidates) {
      Names names = kept;
      names.push_back(candidate.data());  // a literal, so it ends in a zero
      Host host(chip, availability);
      if (!host.add(names)) continue;
      if (Host::passes(host.config()) == 1) {
        plan.metric[quantity] = candidate;
        plan.reason[quantity].clear();
        kept = std::move(names);
        break;
      }
      plan.reason[quantity] =
          std::string(candidate) + " does not fit into the one pass of the metrics before it on chip " + chip;
    }
  }
  if (kept.empty())
    plan.refusal = "CUPTI has none of the metrics of bytes and instructions for chip " + chip;
  else
    plan.num_passes = 1;
  return plan;
}

std::string cuda_says(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + ", " + cudaGetErrorString(error);
}

void wait_for_device() {
  if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess)
    throw Error(ErrorKind::output, "the GPU failed while its counters were read: " + cuda_says(error));
}

void use_device(int ordinal) {
  cudaError_t error = cudaSetDevice(ordinal);
  if (error == cudaSuccess) error = cudaFree(nullptr);  // creates the context
  if (error != cudaSuccess)
    throw Refused{"CUDA device " + std::to_string(ordinal) + " cannot be used: " + cuda_says(error)};
}

/// Asks a driver function of the form CUresult(T*), found through the runtime: linking libcuda would keep the program
/// from starting on a machine without a driver.
template <typename T>
T ask_driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  T answer{};
  if (cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess || reinterpret_cast<CUresult (*)(T*)>(function)(&answer) != CUDA_SUCCESS)
    throw Refused{std::string("the CUDA driver did not answer ") + name + ": install a newer driver"};
  return answer;
}

void check_support(CUdevice device) {
  HBMSCOPE_PARAMS(CUpti_Profiler_DeviceSupported_Params, p);
  p.cuDevice = device;
  p.api = CUPTI_PROFILER_RANGE_PROFILING;
  HBMSCOPE_CALL(cuptiProfilerDeviceSupported, p);
  if (p.isSupported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED) return;
  const auto refuse_unless = [](CUpti_Profiler_Support_Level level, CUptiResult code) {
    if (level != CUPTI_PROFILER_CONFIGURATION_SUPPORTED)
      throw Refused{cupti::refusal(code, "cuptiProfilerDeviceSupported")};
  };
  refuse_unless(p.sli, CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED);
  refuse_unless(p.vGpu, p.vGpu == CUPTI_PROFILER_CONFIGURATION_DISABLED
                            ? CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES
                            : CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED);
  refuse_unless(p.confidentialCompute, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED);
  refuse_unless(p.cmp, CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED);
  refuse_unless(p.wsl, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED);
  refuse_unless(p.isSupported, CUPTI_ERROR_NOT_SUPPORTED);
}

Image counter_availability(CUcontext context) {
  HBMSCOPE_PARAMS(CUpti_Profiler_GetCounterAvailability_Params, p);
  p.ctx = context;
  HBMSCOPE_CALL(cuptiProfilerGetCounterAvailability, p);
  Image image(p.counterAvailabilityImageSize);
  p.pCounterAvailabilityImage = image.data();
  HBMSCOPE_CALL(cuptiProfilerGetCounterAvailability, p);
  return image;
}

}  // namespace

HwMetricPlan plan_hw_metrics(const std::string& chip) {
  try {
    return choose_metrics(chip, {});
  } catch (const Refused& refused) {
    return nothing_of(chip, refused.reason);
  }
}

struct HwCounters::Impl {
  static inline std::atomic<bool> in_use = false;

  int device = 0;
  CUcontext context = nullptr;
  bool owns_process = false;
  bool initialized = false;
  HwMetricPlan plan;
  Image availability;
  std::unique_ptr<Host> host;
  Image config;
  Names metrics;                       // of plan, in the order of `quantities`
  std::vector<HwQuantity> quantities;  // those that are counted

  ~Impl() {
    host.reset();
    if (initialized) {
      HBMSCOPE_PARAMS(CUpti_Profiler_DeInitialize_Params, p);
      HBMSCOPE_CUPTI(cuptiProfilerDeInitialize)(&p);
    }
    if (owns_process) in_use = false;
  }

  void connect(int ordinal) {
    if (in_use.exchange(true)) throw Refused{"this program reads the counters of a device already"};
    owns_process = true;
    device = ordinal;
    use_device(device);
    context = ask_driver<CUcontext>("cuCtxGetCurrent");
    const CUdevice cuda_device = ask_driver<CUdevice>("cuCtxGetDevice");
    HBMSCOPE_PARAMS(CUpti_Profiler_Initialize_Params, p);
    HBMSCOPE_CALL(cuptiProfilerInitialize, p);
    initialized = true;
    check_support(cuda_device);
    HBMSCOPE_PARAMS(CUpti_Device_GetChipName_Params, chip);
    chip.deviceIndex = static_cast<std::size_t>(cuda_device);
    HBMSCOPE_CALL(cuptiDeviceGetChipName, chip);
    plan.chip = chip.pChipName;
    availability = counter_availability(context);
    plan = choose_metrics(plan.chip, availability);
    if (!plan.refusal.empty()) throw Refused{plan.refusal};
    for (const HwQuantity q : kHwQuantities) {
      if (plan.metric[q].empty()) continue;
      quantities.push_back(q);
      metrics.push_back(plan.metric[q].c_str());
    }
    host = std::make_unique<Host>(plan.chip, availability);
    if (!host->add(metrics))
      throw Refused{"CUPTI took the metrics of chip " + plan.chip + " one by one, but not together"};
    config = host->config();
    const std::function<void()> nothing = [] {};
    count({&nothing, 1});
  }

  std::vector<HwReading> count(std::span<const std::function<void()>> ranges) {
    use_device(device);
    Image data;
    Session session(context);
    session.configure(config, metrics, ranges.size(), data);
    session.start();
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      wait_for_device();  // what still runs from before would be counted
      session.push(std::to_string(i));
      ranges[i]();
      wait_for_device();
      session.pop();
    }
    session.stop();
    session.decode();
    return readings(data, ranges.size());
  }

  std::vector<HwReading> readings(const Image& data, std::size_t num_ranges) const {
    HwReading unknown;
    unknown.reason = plan.reason;
    for (const HwQuantity q : quantities) unknown.reason[q] = "CUPTI returned no data for this range";
    std::vector<HwReading> readings(num_ranges, unknown);
    HBMSCOPE_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo_Params, info);
    info.pCounterDataImage = data.data();
    info.counterDataImageSize = data.size();
    HBMSCOPE_CALL(cuptiRangeProfilerGetCounterDataInfo, info);
    for (std::size_t i = 0; i < info.numTotalRanges; ++i) {
      HBMSCOPE_PARAMS(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, range);
      range.pCounterDataImage = data.data();
      range.counterDataImageSize = data.size();
      range.rangeIndex = i;
      range.rangeDelimiter = "/";
      HBMSCOPE_CALL(cuptiRangeProfilerCounterDataGetRangeInfo, range);
      const std::string_view name = range.rangeName == nullptr ? "" : range.rangeName;
      std::size_t index = num_ranges;
      std::from_chars(name.data(), name.data() + name.size(), index);
      if (index >= num_ranges) throw Refused{"CUPTI returned a range that was never pushed: " + std::string(name)};
      const std::vector<double> values = host->evaluate(data, i, metrics);
      for (std::size_t m = 0; m < metrics.size(); ++m) {
        const HwQuantity q = quantities[m];
        const bool known = std::isfinite(values[m]) && values[m] >= 0;
        if (known) readings[index].value[q] = values[m];
        readings[index].reason[q] = known ? "" : plan.metric[q] + " came back as n/a";
      }
    }
    return readings;
  }
};

HwCounters::HwCounters(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HwCounters::~HwCounters() = default;

std::unique_ptr<HwCounters> HwCounters::open(int device_ordinal) {
  std::unique_ptr<HwCounters> counters(new HwCounters(std::make_unique<Impl>()));
  try {
    counters->impl_->connect(device_ordinal);
  } catch (const Refused& refused) {
    cudaGetLastError();  // or it would look like a failure of the caller's next launch
    auto unavailable = std::make_unique<Impl>();
    unavailable->plan = nothing_of(counters->impl_->plan.chip, refused.reason);
    counters->impl_ = std::move(unavailable);  // lets go of CUPTI, so that another try is free
  }
  return counters;
}

bool HwCounters::available() const {
  return impl_->plan.refusal.empty();
}
const std::string& HwCounters::reason() const {
  return impl_->plan.refusal;
}
const HwMetricPlan& HwCounters::plan() const {
  return impl_->plan;
}

std::vector<HwReading> HwCounters::measure(std::span<const std::function<void()>> ranges) {
  HwReading missing;
  missing.reason = impl_->plan.reason;
  if (available() && !ranges.empty()) {
    try {
      return impl_->count(ranges);
    } catch (const Refused& refused) {
      cudaGetLastError();
      missing.reason.values.fill(refused.reason);
    }
  }
  return std::vector<HwReading>(ranges.size(), missing);
}

}  // namespace hbmscope
#endif  // HBMSCOPE_HAVE_CUPTI
