#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/metric_names.hpp"

namespace hbmscope {

/// Which metric of a chip counts which quantity, all of them in one pass, so that nothing has to run twice.
struct HwMetricPlan {
  std::string chip;                ///< as CUPTI calls it: GH100
  ByQuantity<std::string> metric;  ///< the name used; empty where the quantity is not counted
  ByQuantity<std::string> reason;  ///< why it is not counted; empty where it is
  std::size_t num_passes = 0;      ///< 1; 0 where nothing can be counted
  std::string refusal;             ///< why nothing can be counted; empty when num_passes is 1
};

/// The plan for a chip by its name. Needs CUPTI and no GPU.
HwMetricPlan plan_hw_metrics(const std::string& chip);

/// What was counted over one range.
struct HwReading {
  ByQuantity<std::optional<double>> value;  ///< in the quantity's own unit; missing, never 0, where not known
  ByQuantity<std::string> reason;           ///< why it is missing, as a clause a report can quote; empty otherwise
};

/// The hardware's counters of one device, read inside this process. One at a time in a process, used by one thread.
class HwCounters {
 public:
  /// Finds CUPTI, connects to the device, chooses the metrics and counts an empty range, so that a missing permission
  /// or another profiler shows here and not in the first measurement. Takes about half a second; makes the device
  /// current. Never throws because something is missing: `available` and `reason` tell.
  static std::unique_ptr<HwCounters> open(int device_ordinal);
  ~HwCounters();

  [[nodiscard]] bool available() const;
  /// Why nothing can be counted: one clause that says what to change. Empty when available.
  [[nodiscard]] const std::string& reason() const;
  /// The chip, the metrics in use and the passes they take; the chip is empty where it could not be asked for.
  [[nodiscard]] const HwMetricPlan& plan() const;

  /// Runs each of `ranges` once, in order, and counts everything that the device does from its start until the device
  /// is idle again; work from before is waited for first. One reading a range, in the same order. Counts whatever the
  /// range causes: lazy loading of a kernel and copies too, so warm up before. Some 13 ms, and 80 us a range: keep
  /// counting and timing apart. When CUPTI refuses, the readings carry the reason, and not every range may have run
  /// (none when not available). An exception from a range ends the counting and is passed on. Throws Error when the
  /// device fails.
  std::vector<HwReading> measure(std::span<const std::function<void()>> ranges);

 private:
  struct Impl;
  explicit HwCounters(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hbmscope
