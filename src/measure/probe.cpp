#include "measure/probe.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "measure/bench.hpp"
#include "measure/statistics.hpp"
#include "measure/steps.hpp"

namespace hbmscope {
namespace {

constexpr Bytes kStreamBytes{std::int64_t{2} << 30};  ///< many times any L2
constexpr int kSamples = 11;
/// A launch lasts so long, because clocks under power limits settle only after some 10 ms.
constexpr double kLaunchSeconds = 0.06;

/// Median work a second of `samples` launches that take `seconds` each.
Roof roof_of(std::string_view name, std::string_view unit, double work, const std::vector<double>& seconds) {
  Roof roof{name, unit, Known<double>::of(work / median(seconds)), 0};
  roof.spread = (quantile(seconds, 0.75) - quantile(seconds, 0.25)) / median(seconds);
  return roof;
}

std::vector<double> times_of(Device& device, const std::function<void()>& work) {
  const std::array<std::function<void()>, 1> one{work};
  device.time(one);
  std::vector<double> seconds;
  for (int i = 0; i < kSamples; ++i) seconds.push_back(device.time(one).front());
  return seconds;
}

void add_streams(Device& device, std::vector<Roof>& roofs) {
  const DeviceBuffer from(device, kStreamBytes), to(device, kStreamBytes);
  device.fill_bytes(from.data(), 1, kStreamBytes);
  struct Stream {
    std::string_view name;
    Yardstick kind;
    double directions;
  };
  for (const Stream& s :
       {Stream{"copy", Yardstick::copy, 2}, Stream{"read", Yardstick::read, 1}, Stream{"write", Yardstick::fill, 1}}) {
    const std::vector<double> seconds =
        times_of(device, [&] { device.yardstick(s.kind, to.data(), from.data(), kStreamBytes); });
    roofs.push_back(roof_of(s.name, "byte_per_s", s.directions * kStreamBytes.as_double(), seconds));
  }
}

Roof measured(Device& device, Probe which, std::string_view name, std::string_view unit) {
  std::string reason;
  const std::unique_ptr<ProbeKernel> kernel = make_probe(device, which, reason);
  if (kernel == nullptr) return {name, unit, Known<double>::missing(Status::unsupported, reason), 0};
  std::int64_t times = 100;
  const std::array<std::function<void()>, 1> one{[&] { kernel->launch(times); }};
  device.time(one);
  while (true) {  // as many times as fill kLaunchSeconds
    const double seconds = device.time(one).front();
    if (seconds >= kLaunchSeconds * 0.8) break;
    times = static_cast<std::int64_t>(static_cast<double>(times) *
                                      std::clamp(kLaunchSeconds / std::max(seconds, 1e-6), 1.3, 100.0)) +
            1;
  }
  Roof roof = roof_of(name, unit, kernel->work(times), times_of(device, one.front()));
  // fp32 sums of long launches lose digits; a short one shows whether it multiplies right.
  kernel->launch(128);
  device.synchronize();
  if (const std::string wrong = kernel->check(128); !wrong.empty()) {
    roof.rate = Known<double>::missing(Status::failed, wrong);
  }
  return roof;
}

/// Each SM's median of some bursts, each after a rest: power limits hold all SMs at one clock after some 30 ms of work.
Known<std::vector<double>> sm_clocks_of(Device& device) {
  constexpr int kBursts = 9;
  constexpr std::chrono::milliseconds kRest(200);
  std::vector<std::vector<double>> by_sm(static_cast<std::size_t>(device.properties().num_sms));
  for (int i = 0; i < kBursts; ++i) {
    std::this_thread::sleep_for(kRest);
    const std::vector<double> clocks = measure_sm_clocks(device);
    for (std::size_t sm = 0; sm < by_sm.size(); ++sm) {
      if (!(clocks[sm] > 0)) {
        return Known<std::vector<double>>::missing(Status::failed, "SM " + std::to_string(sm) + " had nothing to do");
      }
      by_sm[sm].push_back(clocks[sm]);
    }
  }
  std::vector<double> medians;
  for (const std::vector<double>& clocks : by_sm) medians.push_back(median(clocks));
  return Known<std::vector<double>>::of(std::move(medians));
}

}  // namespace

ProbeResult probe(Device& device, const std::function<void(const std::string&)>& progress) {
  const auto say = [&](const std::string& what) {
    if (progress) progress(what);
  };
  ProbeResult result;
  result.device = device.properties();
  say("measuring HBM");
  add_streams(device, result.roofs);
  say("measuring L2 and the units");
  result.roofs.push_back(measured(device, Probe::l2_read, "l2_read", "byte_per_s"));
  result.roofs.push_back(measured(device, Probe::mma_sync, "mma_sync", "flop_per_s"));
  result.roofs.push_back(measured(device, Probe::wgmma, "wgmma", "flop_per_s"));
  result.roofs.push_back(measured(device, Probe::exp2, "exp2", "exp_per_s"));
  result.clocks = device.clocks();
  say("measuring the clock of each SM");
  result.sm_clocks = sm_clocks_of(device);
  say("checking the hardware counters");
  MeasureRequest nothing;
  nothing.shape.seqlen_q = nothing.shape.seqlen_kv = 1;
  Bench bench(device, nothing);
  const std::unique_ptr<HwCounters> counters = HwCounters::open(result.device.ordinal);
  result.counters = check_counters(bench, *counters);
  return result;
}

}  // namespace hbmscope
