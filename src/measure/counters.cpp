#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/error.hpp"
#include "measure/steps.hpp"

// A counted run is a row of ranges: what a range counts is what happens between two moments at which the device is
// idle. L2 is write-back, so what kernels wrote reaches HBM later; a sweep through a clean buffer with ordinary loads
// brings it there, in a range of its own, and what such a sweep counts after nothing at all is the baseline.
namespace hbmscope {
namespace {

using Ranges = std::vector<std::function<void()>>;
constexpr double kTolerance = 0.01;           ///< of the reads of a known copy
constexpr std::int64_t kYardstickFactor = 8;  ///< times L2, so that what stays dirty matters little

Known<double> value_of(const HwReading& r, HwQuantity q) {
  if (r.value[q]) return Known<double>::of(*r.value[q]);
  return Known<double>::missing(Status::unsupported, r.reason[q]);
}
template <class T>
Known<T> counted(const HwReading& r, HwQuantity q, std::int64_t unit = 1) {
  const Known<double> v = value_of(r, q);
  if (!v) return Known<T>::missing(v.status, v.reason);
  return Known<T>::of(T(std::llround(*v) * unit));
}
Known<Bytes> less(Known<Bytes> a, const Known<Bytes>& b) {
  if (a && b) a.value = *a > *b ? *a - *b : Bytes(0);
  return a;
}
template <class T>
Known<T> plus(Known<T> a, const Known<T>& b) {
  if (!a) return a;
  if (!b) return b;
  a.value = *a + *b;
  return a;
}

HwTraffic at_hbm(const HwReading& r) {
  return {counted<Bytes>(r, HwQuantity::dram_read_bytes), counted<Bytes>(r, HwQuantity::dram_write_bytes)};
}
HwStage stage_of(const HwReading& r, std::int64_t num_sms) {
  HwStage s;
  s.sm_l2 = {counted<Bytes>(r, HwQuantity::xbar_read_bytes),
             counted<Bytes>(r, HwQuantity::l2_write_sectors, static_cast<std::int64_t>(kL2SectorBytes))};
  s.l2_hbm = at_hbm(r);
  s.l2_lookup = counted<Bytes>(r, HwQuantity::l2_lookup_sectors, static_cast<std::int64_t>(kL2SectorBytes));
  s.tensor_instructions = counted<Count>(r, HwQuantity::tensor_instructions);
  const Known<double> ns = value_of(r, HwQuantity::gpu_time_ns), cycles = value_of(r, HwQuantity::sm_cycles);
  s.gpu_time = ns ? Known<Seconds>::of({*ns * 1e-9}) : Known<Seconds>::missing(ns.status, ns.reason);
  if (s.tensor_instructions && cycles && *cycles > 0) {
    s.tensor_instructions_per_cycle =
        Known<double>::of(s.tensor_instructions->as_double() / (*cycles * static_cast<double>(num_sms)));
  }
  const auto clock = [&](HwQuantity q) {
    Known<double> hz = value_of(r, q);
    if (!ns || !(*ns > 0)) return Known<double>::missing(ns.status, ns.reason);
    if (hz) hz.value = *hz / (*ns * 1e-9);
    return hz;
  };
  s.sm_clock_least = clock(HwQuantity::sm_cycles_least);
  s.sm_clock_most = clock(HwQuantity::sm_cycles);
  return s;
}

/// Memory that was given back, many GB after a naive pipeline, is cleared by the driver in its own time; those writes
/// are nobody's. Waits until a sweep through L2 finds none, or two seconds.
void wait_until_quiet(Bench& bench, HwCounters& counters) {
  constexpr int kTries = 40;
  const Bytes quiet(1 << 20);
  const Ranges sweeps{[&] { bench.sweep_l2(); }, [&] { bench.sweep_l2(); }};
  for (int i = 0; i < kTries; ++i) {
    const Known<Bytes> written = at_hbm(counters.measure(sweeps).back()).write;
    if (!written || *written < quiet) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

HwStage no_counts(Status status, const std::string& reason) {
  const auto no_bytes = Known<Bytes>::missing(status, reason);
  return {{no_bytes, no_bytes},
          {no_bytes, no_bytes},
          no_bytes,
          Known<Count>::missing(status, reason),
          Known<Seconds>::missing(status, reason),
          Known<double>::missing(status, reason),
          Known<double>::missing(status, reason),
          Known<double>::missing(status, reason)};
}

void count_in_kernels(Bench& bench, const MeasureRequest::Item& item, PipelineMeasurement& result) {
  bench.poison(item);
  bench.take_kernel_counts();
  result.kernel_counted = Known<Traffic>::of(Traffic(Boundary::sm_l2));
  for (std::size_t i = 0; i < bench.stages().size(); ++i) {
    StageMeasurement& stage = result.stages[i];
    if (!bench.stages()[i].countable) {
      bench.launch(item, i, false);
      stage.kernel_counted = Known<Traffic>::missing(Status::unsupported, "a library's kernel, which counts nothing");
      result.kernel_counted = stage.kernel_counted;
      continue;
    }
    bench.launch(item, i, true);
    bench.device().synchronize();
    stage.kernel_counted = Known<Traffic>::of(bench.take_kernel_counts());
    if (result.kernel_counted) *result.kernel_counted.value += *stage.kernel_counted;
  }
}

Known<CounterCheck> check_counters(Bench& bench, HwCounters& counters) {
  if (!counters.available()) return Known<CounterCheck>::missing(Status::unsupported, counters.reason());
  Device& device = bench.device();
  const Bytes size = Count(kYardstickFactor) * device.properties().l2;
  if (Count(2) * size > device.free_memory()) {
    return Known<CounterCheck>::missing(Status::skipped, "no memory left for the kernels of known bytes");
  }
  const DeviceBuffer from(device, size), to(device, size);
  device.fill_bytes(from.data(), 1, size);
  const auto sweep = [&] { bench.sweep_l2(); };
  CounterCheck check;
  check.metrics = counters.plan();
  Ranges ranges{sweep, [] {}, sweep};
  const std::array<std::pair<Yardstick, std::array<Bytes, 2>>, 3> known{
      {{Yardstick::copy, {size, size}}, {Yardstick::read, {size, Bytes(0)}}, {Yardstick::fill, {Bytes(0), size}}}};
  for (const auto& [kind, bytes] : known) {
    ranges.emplace_back(
        [&device, &to, &from, size, kind = kind] { device.yardstick(kind, to.data(), from.data(), size); });
    ranges.push_back(sweep);
    check.rows.push_back({kind, bytes[0], bytes[1], {}});
  }
  for (const auto& [kind, bytes] : known) device.yardstick(kind, to.data(), from.data(), size);  // loads the kernels
  sweep();
  const std::vector<HwReading> readings = counters.measure(ranges);
  const HwTraffic idle = at_hbm(readings[1]), idle_sweep = at_hbm(readings[2]);
  if (!idle.read || !idle_sweep.write) return Known<CounterCheck>::missing(Status::failed, idle.read.reason);
  check.baseline_read = *idle.read;
  check.baseline_write = *idle.write + *idle_sweep.write;
  Known<CounterCheck> result = Known<CounterCheck>::of(check);
  for (std::size_t i = 0; i < known.size(); ++i) {
    const HwTraffic work = at_hbm(readings[3 + 2 * i]), drain = at_hbm(readings[4 + 2 * i]);
    CounterCheck::Row& row = result.value->rows[i];
    row.counted = {less(work.read, idle.read),
                   less(plus(work.write, drain.write), Known<Bytes>::of(check.baseline_write))};
    if (!row.counted.read || row.expected_read.value() == 0) continue;
    const double factor = row.counted.read->as_double() / row.expected_read.as_double();
    if (std::fabs(factor - 1) > kTolerance) {
      result.status = Status::failed;
      result.reason = "a kernel that reads " + std::to_string(row.expected_read.value()) + " B was counted as " +
                      std::to_string(row.counted.read->value()) + " B";
    }
  }
  return result;
}

void count_in_hardware(Bench& bench, const MeasureRequest& request, const MeasureRequest::Item& item,
                       const Known<CounterCheck>& check, HwCounters* counters, PipelineMeasurement& result) {
  if (!check || check.status == Status::failed) {
    result.hw = no_counts(check ? Status::failed : check.status, check.reason);
    for (StageMeasurement& stage : result.stages) stage.hw = result.hw;
    return;
  }

  wait_until_quiet(bench, *counters);
  const std::int64_t num_sms = bench.device().properties().num_sms;
  Ranges ranges;
  ranges.emplace_back([&] {
    if (request.l2_warm) bench.launch(item);
    if (!request.l2_warm) bench.sweep_l2();
  });
  for (std::size_t i = 0; i < bench.stages().size(); ++i) {
    ranges.emplace_back([&bench, &item, i] { bench.launch(item, i, false); });
  }
  ranges.emplace_back([&] { bench.sweep_l2(); });
  const std::vector<HwReading> readings = counters->measure(ranges);

  for (std::size_t i = 0; i < result.stages.size(); ++i) {
    result.stages[i].hw = stage_of(readings[i + 1], num_sms);
    result.stages[i].hw.l2_hbm.read = less(result.stages[i].hw.l2_hbm.read, Known<Bytes>::of(check->baseline_read));
  }
  // What the last kernel leaves dirty is its own traffic, seen late; from a warm start as much is somebody else's
  // before.
  HwTraffic& last = result.stages.back().hw.l2_hbm;
  if (!request.l2_warm) last.write = plus(last.write, at_hbm(readings.back()).write);
  last.write = less(last.write, Known<Bytes>::of(check->baseline_write));

  result.hw = result.stages.front().hw;
  for (std::size_t i = 1; i < result.stages.size(); ++i) {
    const HwStage& s = result.stages[i].hw;
    HwStage& sum = result.hw;
    sum.sm_l2 = {plus(sum.sm_l2.read, s.sm_l2.read), plus(sum.sm_l2.write, s.sm_l2.write)};
    sum.l2_hbm = {plus(sum.l2_hbm.read, s.l2_hbm.read), plus(sum.l2_hbm.write, s.l2_hbm.write)};
    sum.l2_lookup = plus(sum.l2_lookup, s.l2_lookup);
    sum.tensor_instructions = plus(sum.tensor_instructions, s.tensor_instructions);
    sum.gpu_time = plus(sum.gpu_time, s.gpu_time);
  }
  if (result.stages.size() > 1) {
    result.hw.tensor_instructions_per_cycle = result.hw.sm_clock_least = result.hw.sm_clock_most =
        Known<double>::missing(Status::unsupported, "of one kernel's cycles: see the stages");
  }
}

}  // namespace hbmscope
