#include <algorithm>

#include "analysis/run_parts.hpp"

namespace hbmscope {
namespace {

void compare(const AlgorithmResult& of, const AlgorithmResult& to, RunResult& result) {
  for (const Boundary boundary : {Boundary::sm_l2, Boundary::l2_hbm}) {
    const TrafficEntry *mine = of.at(boundary), *theirs = to.at(boundary);
    if (mine == nullptr || theirs == nullptr || !mine->traffic || !theirs->traffic ||
        mine->traffic->total().value() == 0)
      continue;
    Comparison c{of.algorithm->name,
                 to.algorithm->name,
                 boundary,
                 theirs->traffic->total().as_double() / mine->traffic->total().as_double(),
                 {},
                 {}};
    if (of.predicted && to.predicted) c.speedup_predicted = *to.predicted / *of.predicted;
    if (of.measured && to.measured && of.measured->time && to.measured->time) {
      c.speedup_measured = to.measured->time->median / of.measured->time->median;
    }
    result.comparisons.push_back(c);
  }
}

}  // namespace

void compare_with_naive(RunResult& result) {
  for (const std::string_view base : {"naive", "naive_bwd"}) {
    const AlgorithmResult* to = result.find(base);
    if (to == nullptr) continue;
    for (const AlgorithmResult& of : result.algorithms) {
      if (&of != to && of.algorithm->pass == to->algorithm->pass) compare(of, *to, result);
    }
  }
}

void estimate_step(RunResult& result) {
  const AmdahlInput& in = result.request.amdahl;
  const auto know = [&](double speedup, std::string from) {
    result.amdahl = Known<Amdahl>::of(amdahl(*in.share, speedup));
    result.amdahl_speedup_from = std::move(from);
  };
  if (!in.share) {
    result.amdahl = Known<Amdahl>::missing(Status::unsupported,
                                           "attention's share of the step is not known; give --attention-share");
    return;
  }
  if (in.speedup) return know(*in.speedup, "given");
  if (in.time_saved) return know(speedup_of_time_saved(*in.time_saved), "time saved");
  const auto predicted = std::find_if(result.comparisons.rbegin(), result.comparisons.rend(),
                                      [](const Comparison& c) { return c.speedup_predicted.has_value(); });
  if (predicted == result.comparisons.rend()) {
    result.amdahl =
        Known<Amdahl>::missing(Status::unsupported, "no speed-up is predicted here; give --attention-speedup");
    return;
  }
  know(*predicted->speedup_predicted,
       std::string(predicted->of) + " over " + std::string(predicted->to) + ", predicted");
}

}  // namespace hbmscope
