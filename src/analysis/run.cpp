#include "analysis/run.hpp"

#include <algorithm>
#include <utility>

#include "analysis/remarks.hpp"
#include "analysis/run_parts.hpp"
#include "analysis/run_row.hpp"

namespace hbmscope {
namespace {

/// The request, checked, with its defaults filled in, and what follows from shape and machine alone.
RunResult settled(RunRequest request, const DeviceStatus& device) {
  RunResult result;
  result.request = std::move(request);
  RunRequest& r = result.request;
  validate(r.shape, Speaker::option);
  if (r.algorithms.empty()) r.algorithms = default_algorithms(r.pass);
  result.live_pairs = live_pairs(r.shape);
  result.compulsory = compulsory_bytes(r.shape, r.pass == "backward" ? Pass::backward : Pass::forward);
  result.sram = r.sram.value_or(r.gpu.smem_per_block_bytes);
  result.l2_effective = r.l2.value_or(r.gpu.l2_effective_bytes);
  result.l2_provenance = r.l2 ? Provenance::assumed : r.gpu.l2_effective_provenance;
  if (result.sram.value() < r.shape.element_bytes()) {
    throw Error(ErrorKind::usage, "--sram: " + std::to_string(result.sram.value()) + " B do not hold one element",
                "give the bytes a CTA may use, such as 227KiB");
  }
  result.device = device;
  return result;
}

void require_gpu(const RunRequest& request, const DeviceStatus& device) {
  if (request.engine != Engine::gpu || device.present) return;
  throw Error(ErrorKind::device, "--engine gpu: " + device.reason,
              "take --engine auto for everything that this machine can do");
}

/// What the papers say of the shape.
void quote_papers(RunResult& result) {
  const AttentionShape& shape = result.request.shape;
  // Counts of the naive pipeline may not fit 64 bits where those of the algorithms asked for do.
  try {
    result.paper = Known<PaperClaims>::of(paper_claims(shape, result.sram));
    result.memory_fit = Known<MemoryFit>::of(paper_memory_fit(shape));
  } catch (const Error& error) {
    result.paper = Known<PaperClaims>::missing(Status::unsupported, error.what());
    result.memory_fit = Known<MemoryFit>::missing(Status::unsupported, error.what());
  }
}

RunResult run_with(RunRequest request, const DeviceStatus& device, const Progress& progress) {
  RunResult result = settled(std::move(request), device);
  require_gpu(result.request, device);
  if (const std::string& flash = result.request.flash; !flash.empty()) {
    const AttentionShape& shape = result.request.shape;
    const bool taken = kernels::unsupported_shape(shape).empty() && (shape.dtype != Dtype::fp8 || flash == "flash_v3");
    result.notes.push_back("flash is " + flash + " for this shape on " + result.request.gpu.name +
                           (taken ? ", the fastest of the kernels here" : ", though no kernel here takes it"));
  }
  const std::vector<std::string>& algorithms = result.request.algorithms;
  if (device.present && result.request.engine >= Engine::gpu && result.request.shape.dtype == Dtype::fp8 &&
      result.request.pass == "forward" &&
      std::find(algorithms.begin(), algorithms.end(), "flash_v3") == algorithms.end()) {
    result.notes.push_back(std::string(kernels::kFp8Elsewhere) + ": --algorithm naive,flash_v3");
  }
  if (result.request.rungs && result.request.shape.dtype != Dtype::bf16) {
    result.notes.push_back("--rungs: flash_v3a to flash_v3e run in bf16 alone");
  } else if (result.request.rungs && !device.present) {
    result.notes.push_back(
        "--rungs: flash_v3a to flash_v3e are measured, not predicted: they load what flash_v3 loads with one CTA a "
        "tile");
  }
  quote_papers(result);
  count_traffic(result);
  if (wants(result, Engine::sim)) simulate_traffic(result, progress.fraction);
  predict_times(result);
  check_numerics(result);
  measure_on_device(result, progress.doing);
  compare_with_naive(result);
  estimate_step(result);
  result.warnings = warnings_of(result);
  return result;
}

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
  return run_with(request, device_status(request.device), progress);
}

DeviceStatus device_for(const RunRequest& request) {
  if (request.engine < Engine::gpu)
    return {false, "", "--engine " + std::string(name(request.engine)) + " runs no GPU kernel"};
  const DeviceStatus device = device_status(request.device);
  require_gpu(request, device);
  return device;
}

RunResult run_row(RunRequest request, const DeviceStatus& device) {
  RunResult result = settled(std::move(request), device);
  count_traffic(result);
  if (wants(result, Engine::sim)) simulate_traffic(result, {});
  predict_times(result);
  measure_on_device(result, {});
  return result;
}

RunResult run_on(RunRequest request, const DeviceStatus& device) {
  return run_with(std::move(request), device, {});
}

}  // namespace hbmscope
