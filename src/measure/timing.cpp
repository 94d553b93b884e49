#include <algorithm>
#include <cmath>

#include "measure/statistics.hpp"
#include "measure/steps.hpp"

namespace hbmscope {
namespace {

constexpr int kLeastRepeats = 10, kMostRepeats = 200;
constexpr double kSampleSeconds = 0.35;  ///< of measured time, unless the repeats are given
constexpr double kWarmUpSeconds = 0.1;   ///< clocks rise under load

}  // namespace

TimeSamples time_samples(std::vector<double> seconds, bool cold_l2, const ClockState& clocks) {
  TimeSamples samples;
  samples.seconds = std::move(seconds);
  samples.cold_l2 = cold_l2;
  samples.clocks = clocks;
  samples.median = median(samples.seconds);
  const auto [least, most] = std::minmax_element(samples.seconds.begin(), samples.seconds.end());
  samples.least = *least;
  samples.most = *most;
  samples.spread = (quantile(samples.seconds, 0.75) - quantile(samples.seconds, 0.25)) / samples.median;
  return samples;
}

void take_times(Bench& bench, const MeasureRequest& request, const MeasureRequest::Item& item,
                PipelineMeasurement& result) {
  using Work = std::vector<std::function<void()>>;
  Device& device = bench.device();
  Work stages;
  for (std::size_t i = 0; i < bench.stages().size(); ++i) {
    stages.emplace_back([&bench, &item, i] { bench.launch(item, i, false); });
  }
  const Work whole{[&] { bench.launch(item); }};

  double warm = 0, once = 0;
  do {
    once = device.time(whole).front();
    warm += once;
  } while (warm < kWarmUpSeconds);
  const int repeats = request.repeats.value_or(
      static_cast<int>(std::clamp(kSampleSeconds / std::max(once, 1e-6), double{kLeastRepeats}, double{kMostRepeats})));

  std::vector<double> seconds;
  std::vector<std::vector<double>> by_stage(stages.size());
  for (int i = 0; i < repeats; ++i) {
    if (!request.l2_warm) bench.sweep_l2();
    const std::vector<double> taken = device.time(stages);
    double sum = 0;
    for (std::size_t s = 0; s < taken.size(); ++s) {
      by_stage[s].push_back(taken[s]);
      sum += taken[s];
    }
    seconds.push_back(sum);
  }
  for (std::size_t s = 0; s < by_stage.size(); ++s) result.stages[s].median = Known<Seconds>::of({median(by_stage[s])});
  result.time = Known<TimeSamples>::of(time_samples(std::move(seconds), !request.l2_warm, device.clocks()));

  if (!result.hw.gpu_time) {
    result.launch_gap = Known<Seconds>::missing(result.hw.gpu_time.status, result.hw.gpu_time.reason);
  } else {
    const double gap = result.time->median - result.hw.gpu_time->value;
    result.launch_gap = gap >= 0 ? Known<Seconds>::of({gap})
                                 : Known<Seconds>::missing(Status::skipped,
                                                           "the timed runs were faster than the counted one, by more "
                                                           "than the gaps: the clocks differed");
  }
}

}  // namespace hbmscope
