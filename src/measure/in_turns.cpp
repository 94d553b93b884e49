#include <chrono>
#include <thread>

#include "measure/steps.hpp"

namespace hbmscope {

void read_resources(Bench& bench, const MeasureRequest::Item& item, PipelineMeasurement& result) {
  for (std::size_t i = 0; i < result.stages.size(); ++i) {
    kernels::KernelResources taken;
    bench.launch(item, i, false, &taken);
    result.stages[i].resources =
        taken.registers > 0 ? Known<kernels::KernelResources>::of(taken)
                            : Known<kernels::KernelResources>::missing(Status::unsupported, "this kernel does not say");
  }
  bench.device().synchronize();
}

std::vector<PipelineMeasurement> measure_in_turns(Device& device, const MeasureRequest& request,
                                                  const TurnsOfTiming& turns) {
  Bench bench(device, request);
  std::vector<PipelineMeasurement> results(request.items.size());
  std::vector<std::vector<double>> seconds(request.items.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const MeasureRequest::Item& item = request.items[i];
    results[i].pipeline = item.pipeline;
    results[i].plan = item.plan;
    for (const kernels::Stage& stage : item.pipeline->stages(request.shape, item.plan)) {
      results[i].stages.emplace_back().name = stage.name;
    }
  }
  verify(bench, request, results);
  for (int round = 0; round < turns.rounds; ++round) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      const MeasureRequest::Item& item = request.items[i];
      PipelineMeasurement& p = results[i];
      if (p.exactness.status == Status::failed) {
        p.time = Known<TimeSamples>::missing(Status::failed, "not timed: " + p.exactness.reason);
        for (StageMeasurement& s : p.stages) {
          s.resources = Known<kernels::KernelResources>::missing(Status::failed, p.time.reason);
        }
        continue;
      }
      bench.prepare(item);
      if (round == 0) read_resources(bench, item, p);
      std::this_thread::sleep_for(std::chrono::duration<double>(turns.pause_s));
      for (int n = 0; n < turns.warm_up; ++n) bench.launch(item);
      for (int n = 0; n < turns.runs; ++n) {
        bench.sweep_l2();
        seconds[i].push_back(device.time(std::vector<std::function<void()>>{[&] { bench.launch(item); }}).front());
      }
      if (round + 1 == turns.rounds) {
        p.time = Known<TimeSamples>::of(time_samples(std::move(seconds[i]), true, device.clocks()));
      }
    }
  }
  return results;
}

}  // namespace hbmscope
