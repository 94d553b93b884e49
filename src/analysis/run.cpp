#include "analysis/run.hpp"

#include <algorithm>

#include "analysis/remarks.hpp"
#include "analysis/run_parts.hpp"

namespace hbmscope {
namespace {

/// The request, checked, with its defaults filled in, and what follows from shape and machine alone.
RunResult settled(const RunRequest& request) {
  RunResult result;
  result.request = request;
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
  // Counts of the naive pipeline may not fit 64 bits where those of the algorithms asked for do.
  try {
    result.paper = Known<PaperClaims>::of(paper_claims(r.shape, result.sram));
    result.memory_fit = Known<MemoryFit>::of(paper_memory_fit(r.shape));
  } catch (const Error& error) {
    result.paper = Known<PaperClaims>::missing(Status::unsupported, error.what());
    result.memory_fit = Known<MemoryFit>::missing(Status::unsupported, error.what());
  }
  result.device = device_status(r.device);
  if (r.engine == Engine::gpu && !result.device.present) {
    throw Error(ErrorKind::device, "--engine gpu: " + result.device.reason,
                "take --engine auto for everything that this machine can do");
  }
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
  RunResult result = settled(request);
  if (!request.flash.empty()) {
    result.notes.push_back("flash is " + request.flash + " for this shape on " + request.gpu.name +
                           ", the fastest of the kernels here");
  }
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

}  // namespace hbmscope
