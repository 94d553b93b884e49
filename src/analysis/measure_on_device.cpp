#include <algorithm>
#include <cmath>

#include "analysis/run_parts.hpp"
#include "core/error.hpp"

namespace hbmscope {
namespace {

const kernels::Pipeline* pipeline_of(std::string_view algorithm) {
  const auto all = kernels::pipelines();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const kernels::Pipeline* p) { return p->name == algorithm; });
  return found == all.end() ? nullptr : *found;
}

/// The kernels of an algorithm; in a build for the tile search, the candidate whose tile was asked for and does not
/// ship.
const kernels::Pipeline* pipeline_for(std::string_view algorithm, const AttentionShape& shape, const TilePlan& wanted) {
  const kernels::Pipeline* shipped = pipeline_of(algorithm);
  const auto takes = [&](const kernels::Pipeline* pipeline) {
    if (pipeline->algorithm != algorithm || !pipeline->unsupported(shape).empty()) return false;
    try {
      (void)pipeline->plan(shape, wanted);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  if (shipped == nullptr || takes(shipped)) return shipped;
  const auto all = kernels::candidates();
  const auto found = std::find_if(all.begin(), all.end(), takes);
  return found == all.end() ? shipped : *found;
}

/// Why an algorithm's kernels do not run on this machine; empty where they do.
std::string obstacle(const RunResult& r, const AlgorithmResult& a) {
  if (!r.device.present) return r.device.reason;
  if (r.request.engine < Engine::gpu) return "--engine " + std::string(name(r.request.engine)) + " runs no GPU kernel";
  const kernels::Pipeline* pipeline = pipeline_of(a.algorithm->name);
  if (pipeline == nullptr) return "there is no GPU kernel for " + std::string(a.algorithm->name);
  return pipeline->unsupported(r.request.shape);
}

void leave_out(AlgorithmResult& a, Status status, const std::string& reason) {
  a.measured = Known<PipelineMeasurement>::missing(status, reason);
  a.achieved = Known<FlopPerSecond>::missing(status, reason);
  for (StageResult& s : a.stages) {
    s.measured = Known<StageMeasurement>::missing(status, reason);
    s.tensor_pipe_share = Known<double>::missing(status, reason);
  }
}

Known<double> pipe_share(const RunRequest& request, const StageResult& stage) {
  const auto missing = [](const char* reason) { return Known<double>::missing(Status::unsupported, reason); };
  const Known<Seconds>& time = stage.measured->median;
  if (!time) return Known<double>::missing(time.status, time.reason);
  if (!stage.flops) return missing("this stage multiplies no matrices");
  if (request.shape.dtype == Dtype::fp32) return missing("fp32 products run beside the tensor cores");
  const auto& peak = request.gpu.peak[static_cast<std::size_t>(request.shape.dtype)];
  if (!peak) return missing("the GPU file has no dense rate for this dtype");
  return Known<double>::of((stage.flops->executed_matmul / *time) / *peak);
}

TrafficEntry hw_entry(Boundary boundary, const TilePlan& plan, const HwTraffic& counted) {
  const Known<Bytes>& missing = counted.read ? counted.write : counted.read;
  if (!missing) {
    return bare_entry(boundary, Provenance::hw_counter, plan, Known<Traffic>::missing(missing.status, missing.reason));
  }
  Traffic traffic(boundary);
  traffic.add_unattributed({*counted.read, *counted.write});
  return bare_entry(boundary, Provenance::hw_counter, plan, Known<Traffic>::of(traffic));
}

void add_counted(std::vector<TrafficEntry>& to, const TilePlan& plan, const Known<Traffic>& by_kernel,
                 const HwStage& hw) {
  to.push_back(bare_entry(Boundary::sm_l2, Provenance::kernel_counter, plan, by_kernel));
  to.push_back(hw_entry(Boundary::sm_l2, plan, hw.sm_l2));
  to.push_back(hw_entry(Boundary::l2_hbm, plan, hw.l2_hbm));
}

void keep(const RunRequest& request, AlgorithmResult& a, const PipelineMeasurement& p) {
  a.measured = Known<PipelineMeasurement>::of(p);
  add_counted(a.traffic, a.plan, p.kernel_counted, p.hw);
  for (std::size_t i = 0; i < a.stages.size() && i < p.stages.size(); ++i) {
    add_counted(a.stages[i].traffic, a.plan, p.stages[i].kernel_counted, p.stages[i].hw);
    a.stages[i].measured = Known<StageMeasurement>::of(p.stages[i]);
    a.stages[i].tensor_pipe_share = pipe_share(request, a.stages[i]);
  }
  a.achieved = p.time ? Known<FlopPerSecond>::of(a.flops.matmul / Seconds{p.time->median})
                      : Known<FlopPerSecond>::missing(p.time.status, p.time.reason);
}

/// The kernels' plan for what was asked for; an Error where they hold another number of tiles than was asked for.
TilePlan kernel_plan(const kernels::Pipeline& pipeline, const RunRequest& request, const TilePlan& wanted) {
  TilePlan plan = pipeline.plan(request.shape, wanted);
  if (request.stages_given && plan.stages != wanted.stages) {
    throw Error(ErrorKind::usage,
                "--stages: " + std::string(pipeline.name) + " holds " + std::to_string(plan.stages) +
                    " tiles of K and of V for this shape, not " + std::to_string(wanted.stages),
                "leave it out, or predict with --engine sim");
  }
  return plan;
}

/// That of flash_v3, or its query tile with the rung's own tile of keys, and no cluster: flash_v3 has more tiles than
/// its rungs.
TilePlan rung_plan(const kernels::Pipeline& rung, const AttentionShape& shape, TilePlan summit) {
  try {
    return rung.plan(shape, summit);
  } catch (const Error&) {
    summit.block_kv = summit.cluster = 0;
    return rung.plan(shape, summit);
  }
}

MeasureRequest request_of(const RunResult& r) {
  MeasureRequest m;
  m.shape = r.request.shape;
  m.seed = r.request.seed;
  m.repeats = r.request.repeats;
  m.timing = r.request.repeats != 0;
  m.l2_warm = r.request.l2_warm;
  m.kernel_counters = r.request.kernel_counters;
  m.hw_counters = r.request.hw_counters;
  return m;
}

}  // namespace

CtaOrder causal_order(std::string_view algorithm, const AttentionShape& s, const TilePlan& plan, std::int64_t num_sms) {
  // By times on an H200 (reports/h200/order_times.jsonl).
  const bool two_an_sm = algorithm == "flash_v2";
  const double once = 0.95, many_times = two_an_sm ? 12 : 7.5;
  const double places = static_cast<double>(num_sms) * (two_an_sm ? 2 : 1);
  const double heads = static_cast<double>(s.batch) * static_cast<double>(s.num_heads);
  const double tiles = std::ceil(static_cast<double>(s.seqlen_q) / static_cast<double>(plan.block_q));
  const bool by_head =
      tiles >= once * places || heads * tiles >= many_times * places || 2 * heads > static_cast<double>(num_sms);
  return by_head ? CtaOrder::longest_first : CtaOrder::longest_first_interleaved;
}

TilePlan plan_on_device(const RunResult& r, const Algorithm& a, const TilePlan& wanted) {
  const kernels::Pipeline* pipeline = pipeline_for(a.name, r.request.shape, wanted);
  if (!wants(r, Engine::gpu) || !r.device.present || pipeline == nullptr ||
      !pipeline->unsupported(r.request.shape).empty()) {
    return wanted;
  }
  try {
    TilePlan plan = kernel_plan(*pipeline, r.request, wanted);
    if ((a.name == "flash_v2" || a.name == "flash_v3") && !r.request.order_given && r.request.shape.mask.window_right) {
      plan.order = causal_order(a.name, r.request.shape, plan, r.request.gpu.num_sms);
    }
    return plan;
  } catch (const Error&) {
    // A tile that no kernel has is predicted and simulated all the same, unless the GPU was asked for by name.
    if (r.request.engine == Engine::gpu) throw;
    return wanted;
  }
}

void measure_on_device(RunResult& r, const std::function<void(const std::string&)>& progress) {
  MeasureRequest request = request_of(r);
  std::vector<AlgorithmResult*> measured;
  std::string reason;
  for (AlgorithmResult& a : r.algorithms) {
    reason = obstacle(r, a);
    const kernels::Pipeline* pipeline = pipeline_for(a.algorithm->name, r.request.shape, a.plan);
    if (reason.empty()) {
      try {
        MeasureRequest::Item item{pipeline, kernel_plan(*pipeline, r.request, a.plan), {}};
        for (const StageResult& s : a.stages) item.stage_bytes.push_back(s.traffic.front().traffic->total());
        request.items.push_back(std::move(item));
        measured.push_back(&a);
        continue;
      } catch (const Error& error) {
        reason = error.what();
      }
    }
    leave_out(a, Status::unsupported, reason);
  }
  if (measured.empty()) {
    r.measured = Known<DeviceMeasurement>::missing(Status::unsupported, reason);
    return;
  }
  // cuBLAS beside our own products: the same pipeline, another library.
  const kernels::Pipeline* peer = pipeline_of("naive_cublas");
  const auto naive = std::find_if(request.items.begin(), request.items.end(),
                                  [](const MeasureRequest::Item& i) { return i.pipeline->name == "naive"; });
  if (naive != request.items.end() && peer != nullptr && peer->unsupported(r.request.shape).empty()) {
    MeasureRequest::Item item = *naive;
    item.pipeline = peer;
    request.items.push_back(std::move(item));
  }
  // The rungs that lead up to flash_v3. All receive the same bytes; in pairs flash_v3 loads fewer.
  const auto top = std::find_if(request.items.begin(), request.items.end(),
                                [](const MeasureRequest::Item& i) { return i.pipeline->name == "flash_v3"; });
  if (r.request.rungs && top != request.items.end()) {
    const MeasureRequest::Item summit = *top;
    for (const kernels::Pipeline* rung : kernels::pipelines()) {
      if (rung->algorithm != "flash_v3" || rung->name == "flash_v3") continue;
      MeasureRequest::Item item = summit;
      item.pipeline = rung;
      item.unsupported = rung->unsupported(r.request.shape);
      try {
        item.plan = rung_plan(*rung, r.request.shape, summit.plan);
        item.stage_bytes = {total(algorithm(rung->algorithm).closed_form(r.request.shape, item.plan)).total()};
      } catch (const Error& error) {
        item.unsupported = error.what();
      }
      request.items.push_back(std::move(item));
    }
  }
  try {
    const std::unique_ptr<Device> device = open_device(r.request.device);
    r.measured = Known<DeviceMeasurement>::of(measure(*device, request, progress));
  } catch (const Error& error) {
    // Memory that does not suffice leaves the predictions standing; a GPU that fails voids the run.
    if (error.kind() != ErrorKind::device || r.request.engine == Engine::gpu) throw;
    r.measured = Known<DeviceMeasurement>::missing(Status::skipped, error.what());
    for (AlgorithmResult* a : measured) leave_out(*a, Status::skipped, error.what());
    return;
  }
  if (r.request.require_counters && (!r.measured->counters || r.measured->counters.status == Status::failed)) {
    throw Error(ErrorKind::device, "--require counters: " + r.measured->counters.reason,
                "leave it out to go on with what the kernels count themselves");
  }
  for (std::size_t i = 0; i < measured.size(); ++i) keep(r.request, *measured[i], r.measured->pipelines[i]);
  if (const double scale = kernels::output_scale(r.request.shape.dtype); scale != 1 && !measured.empty()) {
    r.notes.push_back("the kernel writes O multiplied by " + std::to_string(std::llround(scale)) +
                      ", since fp8 has few small numbers; errors are of O itself");
  }
}

std::vector<ProfiledPipeline> run_for_profiler(const RunRequest& request) {
  const std::unique_ptr<Device> device = open_device(request.device);
  RunRequest on_gpu = request;
  on_gpu.engine = Engine::gpu;
  if (on_gpu.algorithms.empty()) on_gpu.algorithms = default_algorithms(on_gpu.pass);
  RunResult result;
  result.request = on_gpu;
  result.device = device_status(request.device);
  result.sram = on_gpu.sram.value_or(on_gpu.gpu.smem_per_block_bytes);
  count_traffic(result);
  MeasureRequest work = request_of(result);
  std::vector<ProfiledPipeline> ran;
  for (const AlgorithmResult& a : result.algorithms) {
    if (const std::string reason = obstacle(result, a); !reason.empty()) {
      throw Error(ErrorKind::usage, std::string(a.algorithm->name) + ": " + reason,
                  std::string("name others with --algorithm, such as ") +
                      (request.shape.dtype == Dtype::fp8 ? "flash_v3" : "naive,flash_v2"));
    }
    MeasureRequest::Item item{pipeline_for(a.algorithm->name, request.shape, a.plan), a.plan, {}};
    ProfiledPipeline& one = ran.emplace_back();
    one.name = item.pipeline->name;
    for (const StageResult& s : a.stages) {
      item.stage_bytes.push_back(s.traffic.front().traffic->total());
      one.stages.push_back(s.name);
    }
    work.items.push_back(std::move(item));
  }
  run_once(*device, work);
  return ran;
}

}  // namespace hbmscope
