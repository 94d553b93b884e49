#pragma once
#include "measure/bench.hpp"

/// The steps of a measurement, in the order in which measure() takes them. Each fills in its part of the result.
namespace hbmscope {

/// Runs each pipeline twice on poisoned outputs and holds a sample of rows against fp64.
void verify(Bench& bench, const MeasureRequest& request, std::vector<PipelineMeasurement>& results);

/// Launches each stage once, and asks what its kernel takes of an SM.
void read_resources(Bench& bench, const MeasureRequest::Item& item, PipelineMeasurement& result);

/// What the samples come to.
TimeSamples time_samples(std::vector<double> seconds, bool cold_l2, const ClockState& clocks);

/// Counts that are not there.
HwStage no_counts(Status status, const std::string& reason);

/// Runs the counted variant once.
void count_in_kernels(Bench& bench, const MeasureRequest::Item& item, PipelineMeasurement& result);

/// The hardware's counters: checked against kernels of known bytes, then one run of each pipeline.
Known<CounterCheck> check_counters(Bench& bench, HwCounters& counters);
void count_in_hardware(Bench& bench, const MeasureRequest& request, const MeasureRequest::Item& item,
                       const Known<CounterCheck>& check, HwCounters* counters, PipelineMeasurement& result);

void take_times(Bench& bench, const MeasureRequest& request, const MeasureRequest::Item& item,
                PipelineMeasurement& result);

}  // namespace hbmscope
