#include "analysis/run.hpp"

#include <algorithm>
#include <atomic>
#include <future>

#include "analysis/remarks.hpp"

namespace hbmscope {
namespace {

constexpr std::int64_t kSampledRows = 256, kSampledHeads = 4;

Known<Traffic> known(const std::vector<StageTraffic>& stages) {
  return Known<Traffic>::of(total(stages));
}

/// Which stages multiply, and what part of the algorithm's matmul FLOPs each does. Products contract over d or d_v, so
/// the parts are exact.
std::optional<FlopCount> stage_flops(const Algorithm& a, std::string_view stage, const AttentionShape& s,
                                     const FlopCount& all) {
  const auto part = [](Flop whole, std::int64_t mine, std::int64_t sum) { return Flop(whole.value() / sum * mine); };
  const std::int64_t d = s.head_dim, dv = s.head_dim_v;
  const std::int64_t pd = (d + 15) / 16 * 16, pdv = (dv + 15) / 16 * 16;
  const auto contracts = [&](std::int64_t dim, std::int64_t padded, std::int64_t products) {
    return FlopCount{part(all.matmul, dim, products * (d + dv)),
                     part(all.executed_matmul, padded, products * (pd + pdv)), Count(0)};
  };
  if (stage == "fused") return all;
  if (a.name == "naive") {
    if (stage == "qk") return contracts(d, pd, 1);
    if (stage == "pv") return contracts(dv, pdv, 1);
    if (stage == "softmax") return FlopCount{Flop(0), Flop(0), all.exp};
  }
  if (a.name == "naive_bwd") {
    if (stage == "dq" || stage == "dk") return contracts(d, pd, 2);
    if (stage == "dv" || stage == "dp") return contracts(dv, pdv, 2);
  }
  return std::nullopt;
}

/// A run in the making: one algorithm after the other, then what only all of them together tell.
class Run {
 public:
  Run(const RunRequest& request, Progress progress) : progress_(std::move(progress)) { result_.request = request; }

  RunResult finish() {
    settle_request();
    for (const std::string& name : result_.request.algorithms) result_.algorithms.push_back(count(algorithm(name)));
    if (wants(Engine::sim)) simulate();
    for (AlgorithmResult& a : result_.algorithms) predict(a);
    check_numerics();
    compare();
    estimate_step();
    result_.warnings = warnings_of(result_);
    return std::move(result_);
  }

 private:
  [[nodiscard]] const AttentionShape& shape() const { return result_.request.shape; }
  [[nodiscard]] const GpuSpec& gpu() const { return result_.request.gpu; }
  [[nodiscard]] bool wants(Engine engine) const { return result_.request.engine >= engine; }
  [[nodiscard]] Pass pass() const { return result_.request.pass == "backward" ? Pass::backward : Pass::forward; }

  void settle_request() {
    RunRequest& r = result_.request;
    validate(r.shape, Speaker::option);
    if (r.algorithms.empty()) r.algorithms = default_algorithms(r.pass);
    result_.live_pairs = live_pairs(r.shape);
    result_.compulsory = compulsory_bytes(r.shape, pass());
    result_.sram = r.sram.value_or(gpu().smem_per_block_bytes);
    result_.l2_effective = r.l2.value_or(gpu().l2_effective_bytes);
    result_.l2_provenance = r.l2 ? Provenance::assumed : gpu().l2_effective_provenance;
    if (result_.sram.value() < shape().element_bytes()) {
      throw Error(ErrorKind::usage, "--sram: " + std::to_string(result_.sram.value()) + " B do not hold one element",
                  "give the bytes a CTA may use, such as 227KiB");
    }
    // Counts of the naive pipeline may not fit 64 bits where those of the algorithms asked for do.
    try {
      result_.paper = Known<PaperClaims>::of(paper_claims(r.shape, result_.sram));
      result_.memory_fit = Known<MemoryFit>::of(paper_memory_fit(r.shape));
    } catch (const Error& error) {
      result_.paper = Known<PaperClaims>::missing(Status::unsupported, error.what());
      result_.memory_fit = Known<MemoryFit>::missing(Status::unsupported, error.what());
    }
    result_.device = device_status();
    if (r.engine == Engine::gpu && !result_.device.present) {
      throw Error(ErrorKind::device, "--engine gpu: " + result_.device.reason,
                  "take --engine auto for everything that this machine can do");
    }
  }

  AlgorithmResult count(const Algorithm& a) {
    const RunRequest& r = result_.request;
    AlgorithmResult one;
    one.algorithm = &a;
    one.plan = choose_plan(a, shape(), r.plan, result_.sram);
    if (a.name == "split_kv")
      one.plan.num_kv_splits = r.kv_splits.value_or(choose_kv_splits(shape(), one.plan, gpu().num_sms));
    one.flops = a.flops(shape(), one.plan);
    one.memory = memory_ledger(a, shape(), one.plan);
    one.smem = smem_tally(a, shape(), one.plan);

    one.traffic.push_back({Boundary::compulsory,
                           Provenance::formula,
                           one.plan,
                           Known<Traffic>::of(compulsory_traffic(shape(), a.pass)),
                           a.pass == Pass::backward ? "live rows of Q, K, V, dO once; dQ, dK, dV once"
                                                    : "live rows of Q, K, V once; O once",
                           true,
                           {},
                           {}});
    if (one.plan.gemm_tile) {
      TilePlan once = one.plan;
      once.gemm_tile.reset();
      one.traffic.push_back(closed_entry(a, once, known(a.closed_form(shape(), once))));
    }
    const std::vector<StageTraffic> stages = a.closed_form(shape(), one.plan);
    one.traffic.push_back(closed_entry(a, one.plan, known(stages)));
    for (const StageTraffic& stage : stages) {
      StageResult& s = one.stages.emplace_back();
      s.name = stage.stage;
      s.traffic.push_back(
          {Boundary::sm_l2, Provenance::closed_form, one.plan, Known<Traffic>::of(stage.traffic), {}, false, {}, {}});
      s.flops = stage_flops(a, stage.stage, shape(), one.flops);
    }
    return one;
  }

  [[nodiscard]] TrafficEntry closed_entry(const Algorithm& a, const TilePlan& plan, Known<Traffic> traffic) const {
    const PlainFormula formula = plain_formula(a, shape(), plan);
    return {Boundary::sm_l2, Provenance::closed_form, plan, std::move(traffic), formula.text, formula.exact, {}, {}};
  }

  void simulate() {
    struct Job {
      AlgorithmResult* to;
      std::vector<KernelWalk> kernels;
      std::int64_t tiles;
    };
    const L2Config config = l2_config(gpu(), result_.l2_effective, result_.request.l2_warm);
    std::vector<Job> jobs;
    std::int64_t expected = 0;
    for (AlgorithmResult& a : result_.algorithms) {
      Job job{&a, a.algorithm->walk(shape(), a.plan), 0};
      try {
        job.tiles = tiles_looked_at(job.kernels);
        if (job.tiles > kMaxTilesSimulated) {
          skip_simulation(a, Status::skipped,
                          "a walk over " + std::to_string(job.tiles) + " tiles, more than the " +
                              std::to_string(kMaxTilesSimulated) + " that are simulated");
          continue;
        }
      } catch (const Error&) {
        skip_simulation(a, Status::skipped, "a walk over more than 2^63 tiles");
        continue;
      }
      const std::int64_t runs =
          (job.tiles <= kMaxTilesForAllPaces && a.algorithm->name.starts_with("flash_v2") ? 3 : 1) *
          (config.warm ? 2 : 1);
      expected += job.tiles * runs;
      jobs.push_back(std::move(job));
    }
    std::atomic<std::int64_t> done{0};
    // Requests stand for tiles here: a tile costs two to seven of them, so the fraction is capped until the end.
    const auto report = [&](std::int64_t requests) {
      const std::int64_t sum = done.fetch_add(requests) + requests;
      if (progress_) progress_(std::min(0.99, static_cast<double>(sum) / (3.0 * static_cast<double>(expected))));
    };
    std::vector<std::future<L2Estimate>> estimates;
    for (const Job& job : jobs) {
      estimates.push_back(std::async(std::launch::async, [&, &job = job] {
        return estimate_l2(job.kernels, job.to->plan.order, config, report);
      }));
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      try {
        keep(*jobs[i].to, jobs[i].kernels, estimates[i].get(), config);
      } catch (const Error& error) {
        skip_simulation(*jobs[i].to, Status::unsupported, error.what());
      }
    }
  }

  static void skip_simulation(AlgorithmResult& a, Status status, const std::string& reason) {
    a.traffic.push_back(
        {Boundary::sm_l2, Provenance::simulated, a.plan, Known<Traffic>::missing(status, reason), {}, false, {}, {}});
    a.traffic.push_back(
        {Boundary::l2_hbm, Provenance::simulated, a.plan, Known<Traffic>::missing(status, reason), {}, false, {}, {}});
  }

  void keep(AlgorithmResult& a, const std::vector<KernelWalk>& kernels, L2Estimate estimate, const L2Config& config) {
    const Known<Traffic> requested = known(estimate.central.requested);
    const double asked = requested->sum().read.as_double();
    const std::optional<double> hit_rate =
        asked > 0 ? std::optional(1 - estimate.central.traffic.sum().read.as_double() / asked) : std::nullopt;
    a.traffic.push_back({Boundary::sm_l2, Provenance::simulated, a.plan, requested, {}, false, {}, {}});
    a.traffic.push_back({Boundary::l2_hbm,
                         Provenance::simulated,
                         a.plan,
                         Known<Traffic>::of(estimate.central.traffic),
                         {},
                         false,
                         std::move(estimate.paces),
                         hit_rate});
    for (std::size_t i = 0; i < a.stages.size(); ++i) {
      a.stages[i].traffic.push_back({Boundary::l2_hbm,
                                     Provenance::simulated,
                                     a.plan,
                                     Known<Traffic>::of(estimate.central.stages[i].traffic),
                                     {},
                                     false,
                                     {},
                                     {}});
    }
    const KernelWalk& main =
        *std::max_element(kernels.begin(), kernels.end(),
                          [](const KernelWalk& x, const KernelWalk& y) { return x.smem_bytes < y.smem_bytes; });
    a.resident_ctas = std::min(resident_units(main, config), main.num_ctas) * main.cluster;
    if (main.shares_streams) a.kv_in_flight = kv_in_flight(main, shape(), config);
  }

  void predict(AlgorithmResult& a) const {
    const std::optional<FlopPerSecond> peak = gpu().peak[static_cast<std::size_t>(shape().dtype)];
    const TrafficEntry* hbm = a.find(Boundary::l2_hbm, Provenance::simulated);
    std::string reason;
    Status status = Status::ok;
    if (!peak) {
      status = Status::unsupported;
      reason = gpu().name + " has no " + std::string(info(shape().dtype).name) + " matmul rate";
    } else if (hbm == nullptr) {
      status = Status::skipped;
      reason = "--engine model leaves the L2 out";
    } else if (!hbm->traffic) {
      status = hbm->traffic.status;
      reason = hbm->traffic.reason;
    }
    if (status != Status::ok) {
      a.roofline = Known<Roofline>::missing(status, reason);
      a.predicted = Known<Seconds>::missing(status, reason);
      for (StageResult& s : a.stages) s.predicted = a.predicted;
      return;
    }
    const Bytes bytes = hbm->traffic->total();
    if (bytes.value() == 0 || a.flops.matmul.value() == 0) {
      a.roofline = Known<Roofline>::missing(Status::unsupported,
                                            bytes.value() == 0 ? "no bytes pass HBM" : "no live pair, no FLOP");
    } else {
      a.roofline = Known<Roofline>::of(roofline(a.flops.matmul, bytes, *peak, gpu().hbm_bandwidth));
    }
    Seconds sum{}, flop_bound{};
    for (StageResult& s : a.stages) {
      const Seconds byte_time = s.traffic.back().traffic->total() / gpu().hbm_bandwidth;
      const Seconds flop_time = s.flops ? s.flops->executed_matmul / *peak : Seconds{};
      s.predicted = Known<Seconds>::of(std::max(byte_time, flop_time) + gpu().launch_overhead);
      sum = sum + *s.predicted;
      if (flop_time > byte_time) flop_bound = flop_bound + flop_time;
    }
    a.predicted = Known<Seconds>::of(sum);
    a.executed_flop_decides = flop_bound.value > sum.value / 2;
  }

  void check_numerics() {
    std::vector<NamedPlan> plans;
    std::vector<AlgorithmResult*> to;
    for (AlgorithmResult& a : result_.algorithms) {
      if (!wants(Engine::cpu)) {
        a.exactness = Known<Exactness>::missing(Status::skipped, "--engine model and sim compute no output");
      } else if (a.algorithm->pass == Pass::backward) {
        a.exactness = Known<Exactness>::missing(Status::unsupported, "the CPU computes forward passes");
      } else {
        plans.push_back({a.algorithm->name, a.plan});
        to.push_back(&a);
      }
    }
    if (plans.empty()) return;
    const RowSample sample = sample_rows(shape(), kSampledRows, kSampledHeads, result_.request.seed);
    if (sample.rows.empty() || sample.batch_heads.empty()) {
      for (AlgorithmResult* a : to)
        a->exactness =
            Known<Exactness>::missing(Status::skipped, "one head's K and V are beyond what the check works through");
      return;
    }
    const std::vector<Exactness> checks = check_exactness(shape(), plans, sample, result_.request.seed);
    for (std::size_t i = 0; i < to.size(); ++i) to[i]->exactness = Known<Exactness>::of(checks[i]);
  }

  void compare() {
    for (const std::string_view base : {"naive", "naive_bwd"}) {
      const AlgorithmResult* to = result_.find(base);
      if (to == nullptr) continue;
      for (const AlgorithmResult& of : result_.algorithms) {
        if (&of == to || of.algorithm->pass != to->algorithm->pass) continue;
        for (const Boundary boundary : {Boundary::sm_l2, Boundary::l2_hbm}) {
          const TrafficEntry *mine = of.at(boundary), *theirs = to->at(boundary);
          if (mine == nullptr || theirs == nullptr || !mine->traffic || !theirs->traffic ||
              mine->traffic->total().value() == 0)
            continue;
          Comparison c{of.algorithm->name,
                       base,
                       boundary,
                       theirs->traffic->total().as_double() / mine->traffic->total().as_double(),
                       {}};
          if (of.predicted && to->predicted) c.speedup_predicted = *to->predicted / *of.predicted;
          result_.comparisons.push_back(c);
        }
      }
    }
  }

  void estimate_step() {
    const AmdahlInput& in = result_.request.amdahl;
    if (!in.share) {
      result_.amdahl = Known<Amdahl>::missing(Status::unsupported,
                                              "attention's share of the step is not known; give --attention-share");
      return;
    }
    if (in.speedup) {
      result_.amdahl = Known<Amdahl>::of(amdahl(*in.share, *in.speedup));
      result_.amdahl_speedup_from = "given";
      return;
    }
    if (in.time_saved) {
      result_.amdahl = Known<Amdahl>::of(amdahl(*in.share, speedup_of_time_saved(*in.time_saved)));
      result_.amdahl_speedup_from = "time saved";
      return;
    }
    const auto predicted = std::find_if(result_.comparisons.rbegin(), result_.comparisons.rend(),
                                        [](const Comparison& c) { return c.speedup_predicted.has_value(); });
    if (predicted == result_.comparisons.rend()) {
      result_.amdahl =
          Known<Amdahl>::missing(Status::unsupported, "no speed-up is predicted here; give --attention-speedup");
      return;
    }
    result_.amdahl = Known<Amdahl>::of(amdahl(*in.share, *predicted->speedup_predicted));
    result_.amdahl_speedup_from = std::string(predicted->of) + " over " + std::string(predicted->to) + ", predicted";
  }

  RunResult result_;
  Progress progress_;
};

}  // namespace

const TrafficEntry* AlgorithmResult::find(Boundary boundary, Provenance provenance) const {
  // The last one: naive lists its floor, with every operand once, before its tiles.
  const auto found = std::find_if(traffic.rbegin(), traffic.rend(), [&](const TrafficEntry& entry) {
    return entry.boundary == boundary && entry.provenance == provenance;
  });
  return found == traffic.rend() ? nullptr : &*found;
}

const TrafficEntry* AlgorithmResult::at(Boundary boundary) const {
  if (boundary == Boundary::sm_l2) return find(boundary, Provenance::closed_form);
  return find(boundary, boundary == Boundary::compulsory ? Provenance::formula : Provenance::simulated);
}

const AlgorithmResult* RunResult::find(std::string_view name) const {
  const auto found = std::find_if(algorithms.begin(), algorithms.end(),
                                  [&](const AlgorithmResult& a) { return a.algorithm->name == name; });
  return found == algorithms.end() ? nullptr : &*found;
}

std::vector<std::string> default_algorithms(std::string_view pass) {
  if (pass == "backward") return {"naive_bwd", "flash_v1_bwd", "flash_v2_bwd"};
  if (pass == "both") return {"naive", "flash_v1", "flash_v2", "naive_bwd", "flash_v1_bwd", "flash_v2_bwd"};
  if (pass == "decode") return {"naive", "flash_v2", "split_kv"};
  return {"naive", "flash_v1", "flash_v2"};
}

RunResult run(const RunRequest& request, const Progress& progress) {
  return Run(request, progress).finish();
}

}  // namespace hbmscope
