#include <algorithm>
#include <atomic>
#include <future>

#include "analysis/run_parts.hpp"

namespace hbmscope {
namespace {

/// One algorithm's kernels, to be played against an L2.
struct Job {
  AlgorithmResult* to;
  std::vector<KernelWalk> kernels;
  std::int64_t tiles;
  L2Config config;
};

void skip(AlgorithmResult& a, Status status, const std::string& reason) {
  for (const Boundary boundary : {Boundary::sm_l2, Boundary::l2_hbm})
    a.traffic.push_back(bare_entry(boundary, Provenance::simulated, a.plan, Known<Traffic>::missing(status, reason)));
}

constexpr std::int64_t kSecond = 1'000'000'000;  ///< in nanoseconds
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr const char* kHowToGoOn = ", and --engine model leaves the L2 out";

/// The algorithms that are not too long to walk; the others are told so.
std::vector<Job> jobs_of(RunResult& result) {
  std::vector<Job> jobs;
  for (AlgorithmResult& a : result.algorithms) {
    Job job{&a, a.algorithm->walk(result.request.shape, a.plan), 0, {}};
    try {
      job.tiles = tiles_looked_at(job.kernels);
    } catch (const Error&) {
      skip(a, Status::skipped, "a walk over more than 2^63 tiles");
      continue;
    }
    if (job.tiles > kMaxTilesSimulated) {
      skip(a, Status::skipped,
           "a walk over " + std::to_string(job.tiles) + " tiles, more than the " + std::to_string(kMaxTilesSimulated) +
               " that are simulated; fewer heads, a shorter sequence or larger tiles are simulated" + kHowToGoOn);
      continue;
    }
    const RunRequest& request = result.request;
    job.config =
        l2_config(request.gpu, result.l2_effective, request.l2_warm, job.kernels, request.shape, job.to->plan.order);
    if (const std::int64_t cost = cost_to_simulate(job.kernels, job.config); cost > kMaxCostSimulated) {
      skip(a, Status::skipped,
           "a simulation of about " + std::to_string(cost / kSecond) + " s on one slow core, more than the " +
               std::to_string(kMaxCostSimulated / kSecond) +
               " s that are taken; fewer heads, a shorter sequence or larger tiles are simulated" + kHowToGoOn);
      continue;
    }
    if (const std::int64_t memory = memory_to_simulate(job.kernels, job.config); memory > kMaxMemorySimulated) {
      skip(a, Status::skipped,
           "a simulation of so many tiles in L2 that they take about " + std::to_string(memory / kGiB) +
               " GiB, more than the " + std::to_string(kMaxMemorySimulated / kGiB) +
               " GiB that are taken; larger tiles or a smaller --l2 are simulated" + kHowToGoOn);
      continue;
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

/// How often estimate_l2() plays these kernels: at every pace where the pace matters and the time allows.
std::int64_t plays(const Job& job) {
  return std::ssize(paces_to_simulate(job.kernels, job.config)) * (job.config.warm ? 2 : 1);
}

void keep(const Job& job, L2Estimate estimate, const AttentionShape& shape) {
  AlgorithmResult& a = *job.to;
  const auto simulated = [&](Boundary boundary, const Traffic& traffic) {
    return bare_entry(boundary, Provenance::simulated, a.plan, Known<Traffic>::of(traffic));
  };
  const Traffic requested = total(estimate.central.requested);
  a.traffic.push_back(simulated(Boundary::sm_l2, requested));
  TrafficEntry& hbm = a.traffic.emplace_back(simulated(Boundary::l2_hbm, estimate.central.traffic));
  hbm.paces = std::move(estimate.paces);
  if (const double asked = requested.sum().read.as_double(); asked > 0)
    hbm.hit_rate = 1 - estimate.central.traffic.sum().read.as_double() / asked;
  for (std::size_t i = 0; i < a.stages.size(); ++i)
    a.stages[i].traffic.push_back(simulated(Boundary::l2_hbm, estimate.central.stages[i].traffic));
  const KernelWalk& main =
      *std::max_element(job.kernels.begin(), job.kernels.end(),
                        [](const KernelWalk& x, const KernelWalk& y) { return x.smem_bytes < y.smem_bytes; });
  a.resident_ctas = std::min(resident_units(main, job.config), main.num_ctas) * main.cluster;
  if (const std::vector<double>& clocks = job.config.sm_clocks; !clocks.empty()) {
    const auto [slowest, fastest] = std::minmax_element(clocks.begin(), clocks.end());
    a.sm_clock_spread = Known<double>::of(*fastest / *slowest - 1);
  } else {
    a.sm_clock_spread = Known<double>::missing(job.config.why_no_clocks, job.config.no_clocks);
  }
  if (main.shares_streams) a.kv_in_flight = kv_in_flight(main, shape, job.config, job.to->plan.order);
}

}  // namespace

void simulate_traffic(RunResult& result, const Fraction& progress) {
  const std::vector<Job> jobs = jobs_of(result);
  std::int64_t expected = 0;
  for (const Job& job : jobs) expected += job.tiles * plays(job);
  std::atomic<std::int64_t> done{0};
  // Requests stand for tiles here: a tile costs two to seven of them, so the fraction is capped until the end.
  const auto report = [&](std::int64_t requests) {
    const std::int64_t sum = done.fetch_add(requests) + requests;
    if (progress) progress(std::min(0.99, static_cast<double>(sum) / (3.0 * static_cast<double>(expected))));
  };
  std::vector<std::future<L2Estimate>> estimates;
  for (const Job& job : jobs) {
    estimates.push_back(std::async(std::launch::async, [&, &job = job] {
      return estimate_l2(job.kernels, job.to->plan.order, job.config, report);
    }));
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    try {
      keep(jobs[i], estimates[i].get(), result.request.shape);
    } catch (const Error& error) {
      skip(*jobs[i].to, Status::unsupported, error.what());
    }
  }
}

}  // namespace hbmscope
