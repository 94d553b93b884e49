#include "measure/measure.hpp"

#include "core/error.hpp"
#include "measure/steps.hpp"

namespace hbmscope {
namespace {

std::string gigabytes(Bytes bytes) {
  const std::string tenths = std::to_string((bytes.value() + 50'000'000) / 100'000'000);
  const std::string padded = tenths.size() < 2 ? "0" + tenths : tenths;
  return padded.substr(0, padded.size() - 1) + "." + padded.back() + " GB";
}

template <class T>
Known<T> not_asked(const char* option) {
  return Known<T>::missing(Status::skipped, std::string("not asked for (") + option + ")");
}

using Say = std::function<void(const std::string&)>;

PipelineMeasurement empty_measurement(const MeasureRequest& request, const MeasureRequest::Item& item) {
  PipelineMeasurement p;
  p.pipeline = item.pipeline;
  p.plan = item.plan;
  for (const kernels::Stage& stage : item.pipeline->stages(request.shape, item.plan)) {
    p.stages.emplace_back().name = stage.name;
  }
  return p;
}

void leave_out(PipelineMeasurement& p, const std::string& reason) {
  const auto none = [&]<class T>(Known<T>& value) { value = Known<T>::missing(Status::skipped, reason); };
  none(p.exactness), none(p.bit_identical), none(p.kernel_counted), none(p.time), none(p.launch_gap), none(p.peak);
  p.hw = no_counts(Status::skipped, reason);
  for (StageMeasurement& s : p.stages) {
    none(s.kernel_counted), none(s.median), none(s.resources);
    s.hw = p.hw;
  }
}

/// All of it, for items that fit.
DeviceMeasurement measure_all(Device& device, const MeasureRequest& request, const Say& say) {
  DeviceMeasurement result;
  result.device = device.properties();
  Bench bench(device, request);
  for (const MeasureRequest::Item& item : request.items) result.pipelines.push_back(empty_measurement(request, item));
  say("checking results against fp64");
  verify(bench, request, result.pipelines);

  const std::unique_ptr<HwCounters> counters = request.hw_counters ? HwCounters::open(result.device.ordinal) : nullptr;
  say("checking the hardware counters");
  result.counters = counters ? check_counters(bench, *counters) : not_asked<CounterCheck>("--hw-counters off");

  for (std::size_t i = 0; i < request.items.size(); ++i) {
    const MeasureRequest::Item& item = request.items[i];
    PipelineMeasurement& p = result.pipelines[i];
    bench.prepare(item);
    say("counting " + std::string(item.pipeline->name));
    if (request.kernel_counters) {
      count_in_kernels(bench, item, p);
    } else {
      p.kernel_counted = not_asked<Traffic>("--kernel-counters off");
      for (StageMeasurement& s : p.stages) s.kernel_counted = p.kernel_counted;
    }
    read_resources(bench, item, p);  // and loads the timed kernels
    count_in_hardware(bench, request, item, result.counters, counters.get(), p);
    if (p.exactness.status == Status::failed) {
      p.time = Known<TimeSamples>::missing(Status::failed, "not timed: " + p.exactness.reason);
    } else if (!request.timing) {
      p.time = not_asked<TimeSamples>("--repeats 0");
    } else {
      say("timing " + std::string(item.pipeline->name));
      take_times(bench, request, item, p);
      continue;
    }
    p.launch_gap = Known<Seconds>::missing(p.time.status, p.time.reason);
    for (StageMeasurement& s : p.stages) s.median = p.launch_gap;
  }
  return result;
}

}  // namespace

DeviceMeasurement measure(Device& device, const MeasureRequest& request,
                          const std::function<void(const std::string&)>& progress) {
  const Say say = [&](const std::string& what) {
    if (progress) progress(what);
  };
  DeviceMeasurement result;
  result.device = device.properties();
  // A pipeline whose temporaries do not fit is left out; the others run.
  MeasureRequest runnable = request;
  runnable.items.clear();
  std::vector<std::size_t> place;  // of each runnable item among all
  const Bytes free = device.free_memory();
  for (std::size_t i = 0; i < request.items.size(); ++i) {
    MeasureRequest alone = request;
    alone.items = {request.items[i]};
    const Bytes needed = memory_needed(alone, result.device);
    result.pipelines.push_back(empty_measurement(request, request.items[i]));
    if (!request.items[i].unsupported.empty()) {
      leave_out(result.pipelines.back(), request.items[i].unsupported);
    } else if (needed <= free) {
      place.push_back(i);
      runnable.items.push_back(request.items[i]);
    } else {
      leave_out(result.pipelines.back(), "it needs " + gigabytes(needed) + " of device memory (" +
                                             std::to_string(needed.value()) + " B), and " + gigabytes(free) +
                                             " are free");
    }
  }
  if (runnable.items.empty()) {
    throw Error(ErrorKind::device, result.pipelines.front().time.reason,
                "leave out naive, which stores S and P, or take a shorter sequence or fewer heads");
  }
  DeviceMeasurement measured = measure_all(device, runnable, say);
  result.counters = std::move(measured.counters);
  for (std::size_t i = 0; i < place.size(); ++i) result.pipelines[place[i]] = std::move(measured.pipelines[i]);
  return result;
}

void run_once(Device& device, const MeasureRequest& request) {
  const Bytes needed = memory_needed(request, device.properties()), free = device.free_memory();
  if (needed > free) {
    throw Error(ErrorKind::device,
                "it takes " + gigabytes(needed) + " of device memory, and " + gigabytes(free) + " are free",
                "take a shorter sequence or fewer heads");
  }
  Bench bench(device, request);
  for (const MeasureRequest::Item& item : request.items) {
    bench.prepare(item);
    bench.launch(item);
    device.synchronize();
  }
}

}  // namespace hbmscope
