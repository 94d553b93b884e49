#include <algorithm>

#include "analysis/run_parts.hpp"

namespace hbmscope {
namespace {

/// Why an algorithm's time cannot be predicted; ok where it can.
Known<Seconds> obstacle(const AlgorithmResult& a, const RunRequest& r) {
  const TrafficEntry* hbm = a.find(Boundary::l2_hbm, Provenance::simulated);
  if (!r.gpu.peak[static_cast<std::size_t>(r.shape.dtype)]) {
    return Known<Seconds>::missing(Status::unsupported,
                                   r.gpu.name + " has no " + std::string(info(r.shape.dtype).name) + " matmul rate");
  }
  if (hbm == nullptr) return Known<Seconds>::missing(Status::skipped, "--engine model leaves the L2 out");
  if (!hbm->traffic) return Known<Seconds>::missing(hbm->traffic.status, hbm->traffic.reason);
  return {};
}

/// What the kernels' times are made of: of each kernel the larger of its two terms, and its launch.
class TimeParts {
 public:
  void add(Seconds byte_time, Seconds flop_time) {
    Seconds& larger = flop_time > byte_time ? flops_ : bytes_;
    larger = larger + std::max(byte_time, flop_time);
  }
  [[nodiscard]] bool flops_decide() const { return flops_ > bytes_; }
  [[nodiscard]] Seconds sum() const { return bytes_ + flops_; }

 private:
  Seconds bytes_{}, flops_{};
};

void predict(AlgorithmResult& a, const RunRequest& r) {
  if (const Known<Seconds> missing = obstacle(a, r); missing.status != Status::ok) {
    a.roofline = Known<Roofline>::missing(missing.status, missing.reason);
    a.predicted = missing;
    for (StageResult& s : a.stages) s.predicted = missing;
    return;
  }
  const FlopPerSecond peak = *r.gpu.peak[static_cast<std::size_t>(r.shape.dtype)];
  const Bytes bytes = a.at(Boundary::l2_hbm)->traffic->total();
  if (bytes.value() == 0 || a.flops.matmul.value() == 0) {
    a.roofline = Known<Roofline>::missing(Status::unsupported,
                                          bytes.value() == 0 ? "no bytes pass HBM" : "no live pair, no FLOP");
  } else {
    a.roofline = Known<Roofline>::of(roofline(a.flops.matmul, bytes, peak, r.gpu.hbm_bandwidth));
  }
  TimeParts executed, useful;
  a.launches = {};
  for (StageResult& s : a.stages) {
    const Seconds byte_time = s.traffic.back().traffic->total() / r.gpu.hbm_bandwidth;
    const Seconds flop_time = s.flops ? s.flops->executed_matmul / peak : Seconds{};
    executed.add(byte_time, flop_time);
    useful.add(byte_time, s.flops ? s.flops->matmul / peak : Seconds{});
    a.launches = a.launches + r.gpu.launch_overhead;
    s.predicted = Known<Seconds>::of(std::max(byte_time, flop_time) + r.gpu.launch_overhead);
  }
  a.predicted = Known<Seconds>::of(executed.sum() + a.launches);
  if (a.launches > executed.sum()) {
    a.limit = TimeLimit::launches;
  } else if (!executed.flops_decide()) {
    a.limit = TimeLimit::hbm;
  } else {
    a.limit = useful.flops_decide() ? TimeLimit::compute : TimeLimit::padding;
  }
}

}  // namespace

void predict_times(RunResult& result) {
  for (AlgorithmResult& a : result.algorithms) predict(a, result.request);
}

}  // namespace hbmscope
