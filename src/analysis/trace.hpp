#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run.hpp"
#include "simulate/schedule_listener.hpp"

/// The tile schedule of a shape, event by event. No text is made here.
namespace hbmscope {

/// Told of the schedules of several algorithms, one after the other.
class TraceListener : public ScheduleListener {
 public:
  /// The schedule of `algorithm` begins; time starts at 0 again.
  virtual void begin(const AlgorithmResult& algorithm) = 0;
};

/// What the events of one kernel come to.
struct TracedStage {
  std::string_view name;
  std::int64_t requests = 0;     ///< tiles that the CTAs asked for
  std::int64_t hits = 0;         ///< of them, those that moved nothing between L2 and HBM at that moment
  std::int64_t write_backs = 0;  ///< tiles that L2 wrote to HBM, besides
  Traffic sm_l2{Boundary::sm_l2}, l2_hbm{Boundary::l2_hbm};
};

struct TracedAlgorithm {
  const AlgorithmResult* result;  ///< within Trace::run
  std::vector<TracedStage> stages;
};

struct Trace {
  RunResult run;  ///< closed forms: what the events add up to
  std::vector<TracedAlgorithm> algorithms;
};

inline constexpr std::int64_t kDefaultMaxEvents = 1'000'000;

/// The algorithms that are traced when none are named: the fused one of each pass.
std::vector<std::string> default_traced_algorithms(std::string_view pass);

/// Plays each algorithm's kernels against the L2 of the request, at the central pace, and tells `listener`.
/// An Error (kind usage), before it is told anything, where more than `max_events` tiles are asked for; an Error
/// (kind check) where the events do not add up, by stage and tensor, to the closed form and to what the L2 counted.
Trace trace(const RunRequest& request, std::int64_t max_events, TraceListener& listener, const Fraction& progress = {});

}  // namespace hbmscope
