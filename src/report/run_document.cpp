#include "report/run_document.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/version.hpp"
#include "report/run_labels.hpp"
#include "report/run_sections.hpp"

namespace hbmscope {

const AlgorithmResult* fused(const RunResult& r, Pass pass) {
  const auto found = std::find_if(r.algorithms.rbegin(), r.algorithms.rend(), [&](const AlgorithmResult& a) {
    return a.algorithm->pass == pass && !a.algorithm->name.starts_with("naive");
  });
  return found == r.algorithms.rend() ? nullptr : &*found;
}

bool has_hbm(const RunResult& r) {
  return std::any_of(r.algorithms.begin(), r.algorithms.end(),
                     [](const AlgorithmResult& a) { return a.at(Boundary::l2_hbm) != nullptr; });
}

std::pair<Bytes, Bytes> interval(const TrafficEntry& entry) {
  Bytes least = entry.traffic->total(), most = least;
  for (const L2Estimate::PaceTotal& pace : entry.paces) {
    least = std::min(least, pace.total);
    most = std::max(most, pace.total);
  }
  return {least, most};
}

std::string_view matmul_units(const RunResult& r) {
  return r.request.shape.dtype == Dtype::fp32 ? "the FP32 units" : "the tensor cores";
}

Document run_document(const RunResult& r, const RunView& view) {
  Document out;
  std::string gpu = r.request.gpu.name;
  if (r.request.gpu_assumed) gpu += " (assumed)";
  out.push_back(Paragraph{fmt::format("hbmscope {}   {}   GPU: {}", hbmscope_version(),
                                      shape_words(r.request.shape, r.request.pass), gpu)});
  append_answer(out, r);
  if (view.chart) append_charts(out, r, *view.chart);
  append_traffic_tables(out, r, view);
  if (view.tensors) append_tensor_tables(out, r, view);
  append_measured_tables(out, r, view);
  append_time_table(out, r, view);
  append_labels(out, r, view);
  return out;
}

}  // namespace hbmscope
