#include "analysis/trace.hpp"

#include <algorithm>

#include "simulate/request_count.hpp"

namespace hbmscope {
namespace {

/// Adds up what is told, and tells it on.
class Adder : public ScheduleListener {
 public:
  Adder(TracedAlgorithm& to, TraceListener& listener) : to_(to), listener_(listener) {}

  void stage(std::string_view name) override {
    to_.stages.emplace_back().name = name;
    listener_.stage(name);
  }
  void time(std::int64_t now) override { listener_.time(now); }
  void request(const PlayedRequest& r) override {
    TracedStage& stage = to_.stages.back();
    ++stage.requests;
    add(stage.sm_l2, r.tile.tensor, r.bytes, r.store);
    if (r.through_hbm) {
      add(stage.l2_hbm, r.tile.tensor, r.bytes, r.store);
    } else {
      ++stage.hits;
    }
    listener_.request(r);
  }
  void left_l2(const TileId& tile, Bytes bytes, bool written_back) override {
    TracedStage& stage = to_.stages.back();
    if (written_back) {
      ++stage.write_backs;
      stage.l2_hbm.write(tile.tensor, bytes);
    }
    listener_.left_l2(tile, bytes, written_back);
  }

 private:
  static void add(Traffic& traffic, Tensor tensor, Bytes bytes, bool store) {
    store ? traffic.write(tensor, bytes) : traffic.read(tensor, bytes);
  }

  TracedAlgorithm& to_;
  TraceListener& listener_;
};

constexpr const char* kTakeLess = "trace fewer heads, a shorter sequence or larger tiles";

/// How many tiles the kernels ask for; an Error where looking at all of them would take too long.
std::int64_t requests_of(const AlgorithmResult& a, const std::vector<KernelWalk>& kernels) {
  const std::int64_t tiles = tiles_looked_at(kernels);
  if (tiles <= kMaxTilesSimulated) return count_requests(kernels);
  const bool endless = std::any_of(kernels.begin(), kernels.end(),
                                   [](const KernelWalk& k) { return k.tiles_per_pass > kMaxTilesSimulated; });
  const double about = endless ? static_cast<double>(tiles) : estimate_requests(kernels);
  throw Error(ErrorKind::usage,
              std::string(a.algorithm->name) + ": about " +
                  std::to_string(static_cast<std::int64_t>(std::min(about, 9e18))) + " events, from a walk over " +
                  std::to_string(tiles) + " tiles; " + std::to_string(kMaxTilesSimulated) + " are simulated at most",
              kTakeLess);
}

/// All of them together; an Error where they are more than `most`.
std::int64_t checked_requests(const RunResult& r, const std::vector<std::vector<KernelWalk>>& kernels,
                              std::int64_t most) {
  WideInt sum = 0;
  std::string names;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    sum += requests_of(r.algorithms[i], kernels[i]);
    names += (i == 0 ? "" : ", ") + std::string(r.algorithms[i].algorithm->name);
  }
  const std::int64_t requests = narrow(sum).value();
  if (requests <= most) return requests;
  throw Error(
      ErrorKind::usage,
      names + ": " + std::to_string(requests) + " events, more than the " + std::to_string(most) + " of --max-events",
      std::string(kTakeLess) + ", or raise --max-events");
}

void check_sum(const AlgorithmResult& a, std::string_view stage, const Traffic& events, const Traffic& expected) {
  if (events == expected) return;
  throw Error(ErrorKind::check,
              std::string(a.algorithm->name) + ": the events of stage " + std::string(stage) + " add up to " +
                  std::to_string(events.total().value()) + " B at " + std::string(name(events.boundary())) +
                  ", not to the run's " + std::to_string(expected.total().value()) + " B tensor by tensor",
              "please report this with the command line");
}

/// The events' bytes by stage and tensor: of the algebra between SM and L2, of the simulated L2 between L2 and HBM.
void check_sums(const TracedAlgorithm& traced, const L2Result& l2) {
  const AlgorithmResult& a = *traced.result;
  if (traced.stages.size() != a.stages.size()) {
    throw Error(ErrorKind::check, std::string(a.algorithm->name) + ": its events are not of the run's stages",
                "please report this with the command line");
  }
  for (std::size_t i = 0; i < traced.stages.size(); ++i) {
    const TracedStage& stage = traced.stages[i];
    check_sum(a, stage.name, stage.sm_l2, *a.stages[i].traffic.front().traffic);
    check_sum(a, stage.name, stage.l2_hbm, l2.stages[i].traffic);
  }
}

}  // namespace

std::vector<std::string> default_traced_algorithms(std::string_view pass) {
  if (pass == "both") return {"flash_v2", "flash_v2_bwd"};
  return {default_algorithms(pass).back()};
}

Trace trace(const RunRequest& request, std::int64_t max_events, TraceListener& listener, const Fraction& progress) {
  RunRequest formulas = request;
  formulas.engine = Engine::model;
  if (formulas.algorithms.empty()) formulas.algorithms = default_traced_algorithms(request.pass);
  Trace result;
  result.run = run(formulas);
  const RunResult& r = result.run;
  const L2Config config = l2_config(r.request.gpu, r.l2_effective, r.request.l2_warm);

  std::vector<std::vector<KernelWalk>> kernels;
  for (const AlgorithmResult& a : r.algorithms) kernels.push_back(a.algorithm->walk(r.request.shape, a.plan));
  const std::int64_t expected = checked_requests(r, kernels, max_events) * (r.request.l2_warm ? 2 : 1);
  std::int64_t done = 0;
  const auto report = [&](std::int64_t requests) {
    done += requests;
    if (progress) progress(std::min(0.99, static_cast<double>(done) / static_cast<double>(expected)));
  };
  for (std::size_t i = 0; i < r.algorithms.size(); ++i) {
    const AlgorithmResult& a = r.algorithms[i];
    TracedAlgorithm& traced = result.algorithms.emplace_back(TracedAlgorithm{&a, {}});
    listener.begin(a);
    Adder adder(traced, listener);
    const L2Result l2 = simulate_l2(kernels[i], a.plan.order, config, Pace::coupled, report, &adder);
    check_sums(traced, l2);
  }
  return result;
}

}  // namespace hbmscope
