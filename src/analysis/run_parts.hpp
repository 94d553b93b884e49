#pragma once
#include "analysis/run.hpp"

/// The parts of a run, in the order in which run() takes them. Each fills in fields of its own and reads those of the
/// parts before it; what a part cannot know stays a Known without a value, with the reason.
namespace hbmscope {

/// Plan, FLOPs, memory, compulsory bytes and closed forms of each algorithm asked for.
void count_traffic(RunResult& result);

/// Bytes through the L2, by walking each algorithm's kernels; what a walk takes too long for is skipped.
void simulate_traffic(RunResult& result, const Fraction& progress);

/// Roofline and predicted time, from simulated HBM bytes and executed FLOPs.
void predict_times(RunResult& result);

/// Exactness, from a sample of rows computed on the CPU.
void check_numerics(RunResult& result);

/// The order in which the GPU starts the CTAs of flash_v2 or flash_v3 under a causal mask, where nobody asks for one:
/// the longest first, as they differ in length and the last should be short. Heads go one after the other where that
/// ends as evenly, as CTAs then read K and V of one head at a time: where the query tiles of a head fill the GPU once,
/// or those of all heads many times. So they do with more heads than half of the SMs, of which side by side no two CTAs
/// of a head would run at one time. Else all heads go side by side.
CtaOrder causal_order(std::string_view algorithm, const AttentionShape& shape, const TilePlan& plan,
                      std::int64_t num_sms);

/// The plan that this machine's GPU kernel of the algorithm runs, where there is one; else `wanted`.
TilePlan plan_on_device(const RunResult& result, const Algorithm& algorithm, const TilePlan& wanted);

/// Runs, verifies, counts and times the kernels on the GPU, where there is one. `progress` is told what is being done.
void measure_on_device(RunResult& result, const std::function<void(const std::string&)>& progress);

/// Every other algorithm of a pass beside the naive one.
void compare_with_naive(RunResult& result);

/// What it all does to the step that attention is part of.
void estimate_step(RunResult& result);

/// An entry that no formula, pace or hit rate belongs to.
inline TrafficEntry bare_entry(Boundary boundary, Provenance provenance, const TilePlan& plan, Known<Traffic> traffic) {
  return {boundary, provenance, plan, std::move(traffic), {}, false, {}, {}};
}

/// Does the run go as far as this engine?
inline bool wants(const RunResult& result, Engine engine) {
  return result.request.engine >= engine;
}

}  // namespace hbmscope
