// Stands in for hw_counters_cupti.cpp where a build has no CUDA or no CUPTI.
#include <utility>

#include "device/hw_counters.hpp"

namespace hbmscope {

namespace {
constexpr const char* kReason =
    "this build has no hardware counters: build it with a CUDA toolkit that has CUPTI, without sanitizers";
}

struct HwCounters::Impl {
  HwMetricPlan plan;
};

HwMetricPlan plan_hw_metrics(const std::string& chip) {
  HwMetricPlan plan;
  plan.chip = chip;
  plan.refusal = kReason;
  plan.reason.values.fill(kReason);
  return plan;
}

HwCounters::HwCounters(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HwCounters::~HwCounters() = default;

std::unique_ptr<HwCounters> HwCounters::open(int /*device_ordinal*/) {
  return std::unique_ptr<HwCounters>(new HwCounters(std::make_unique<Impl>(Impl{plan_hw_metrics("")})));
}

bool HwCounters::available() const {
  return false;
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
  return std::vector<HwReading>(ranges.size(), missing);
}

}  // namespace hbmscope
