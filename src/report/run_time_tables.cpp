#include <fmt/format.h>

#include "report/format.hpp"
#include "report/run_sections.hpp"

namespace hbmscope {
namespace {

Table tensor_table(const AlgorithmResult& a, const RunResult& r) {
  const TrafficEntry *sm = a.at(Boundary::sm_l2), *hbm = a.at(Boundary::l2_hbm);
  Table t{fmt::format("{}, bytes by tensor", a.algorithm->name),
          {{"", false}, {"size"}, {"SM-L2 read"}, {"times"}, {"SM-L2 write"}, {"times"}},
          {},
          {}};
  const bool with_hbm = hbm != nullptr && hbm->traffic;
  if (with_hbm) t.columns.insert(t.columns.end(), {{"HBM read"}, {"HBM write"}});
  const auto exact = [](Bytes b) { return b.value() == 0 ? std::string(kNone) : text::integer(b.value()); };
  for (const TensorInfo& tensor : kTensors) {
    const ReadWrite bytes = (*sm->traffic)[tensor.tensor];
    if (bytes.total().value() == 0) continue;
    const Bytes size = tensor_bytes(tensor.tensor, r.request.shape, a.plan);
    const auto times = [&](Bytes b) {
      return b.value() == 0 ? std::string(kNone) : text::significant(b.as_double() / size.as_double(), 5);
    };
    std::vector<std::string> cells{std::string(tensor.name), text::integer(size.value()), exact(bytes.read),
                                   times(bytes.read),        exact(bytes.write),          times(bytes.write)};
    if (with_hbm) {
      const ReadWrite through = (*hbm->traffic)[tensor.tensor];
      cells.push_back(exact(through.read));
      cells.push_back(exact(through.write));
    }
    t.rows.push_back(std::move(cells));
  }
  return t;
}

/// Known as soon as the bytes are, with or without a roof to hold it against.
std::string hbm_intensity(const AlgorithmResult& a) {
  const TrafficEntry* hbm = a.at(Boundary::l2_hbm);
  const bool counted = hbm != nullptr && hbm->traffic && hbm->traffic->total().value() > 0;
  return counted ? text::intensity(a.flops.matmul / hbm->traffic->total()) : std::string(kNone);
}

std::string bound_word(const AlgorithmResult& a, std::string_view roof) {
  if (!a.limit) return std::string(kNone);
  switch (*a.limit) {
    case TimeLimit::hbm:
      return "HBM";
    case TimeLimit::compute:
      return std::string(roof);
    case TimeLimit::padding:
      return fmt::format("{}, padding", roof);
    case TimeLimit::launches:
      break;
  }
  return "launches";
}

std::string measured_time(const AlgorithmResult& a) {
  return a.measured && a.measured->time ? text::seconds({a.measured->time->median}) : std::string(kNone);
}

void explain_times(Table& t, const RunResult& r) {
  const GpuSpec& gpu = r.request.gpu;
  const auto& peak = gpu.peak[static_cast<std::size_t>(r.request.shape.dtype)];
  t.notes.push_back(fmt::format("FLOP: 2 (d + d_v) a live pair forward, {} live pairs; whole padded tiles take more.",
                                text::integer(r.live_pairs.value())));
  if (!peak) return;
  t.notes.push_back(fmt::format(
      "predicted: summed over kernels, the larger of HBM bytes / {} and executed FLOP / {}, plus {} a launch "
      "(assumed). Peaks are datasheet "
      "values that no kernel reaches; exponentials, L2 bandwidth and idle SMs are left out, so real kernels are "
      "slower.",
      text::byte_rate(gpu.hbm_bandwidth), text::flop_rate(*peak), text::seconds(gpu.launch_overhead)));
  t.notes.push_back(fmt::format(
      "bound: what makes up most of the predicted time. Of one kernel that is HBM left of the "
      "ridge, {} / {} = {} FLOP/B, and the other roof right of it, until the launches are "
      "more than half.",
      text::flop_rate(*peak), text::byte_rate(gpu.hbm_bandwidth), text::intensity(*peak / gpu.hbm_bandwidth)));
}

}  // namespace

void append_tensor_tables(Document& out, const RunResult& r, const RunView& view) {
  for (const AlgorithmResult& a : r.algorithms) {
    Table t = tensor_table(a, r);
    if (view.explain)
      t.notes.emplace_back("times: bytes over the tensor's size: how often it passes, on average over its rows.");
    out.push_back(std::move(t));
  }
}

void append_time_table(Document& out, const RunResult& r, const RunView& view) {
  Table t{"Time",
          {{"", false}, {"FLOP"}, {"FLOP/B HBM"}, {"FLOP/B L2"}, {"bound", false}, {"predicted"}, {"measured"}},
          {},
          {}};
  const std::string_view roof = r.request.shape.dtype == Dtype::fp32 ? "FP32" : "tensor";
  std::string reason, not_measured;
  for (const AlgorithmResult& a : r.algorithms) {
    const Bytes sm = a.at(Boundary::sm_l2)->traffic->total();
    t.rows.push_back({std::string(a.algorithm->name), text::flop(a.flops.matmul), hbm_intensity(a),
                      text::intensity(a.flops.matmul / sm), bound_word(a, roof),
                      a.predicted ? text::seconds(*a.predicted) : std::string(kNone), measured_time(a)});
    if (a.limit == TimeLimit::padding) {
      t.notes.push_back(
          fmt::format("{}, padding: {} executes {} in whole tiles, padded or masked, for {} of use; with those alone "
                      "it would wait for HBM.",
                      roof, a.algorithm->name, text::flop(a.flops.executed_matmul), text::flop(a.flops.matmul)));
    }
    if (!a.predicted) reason = a.predicted.reason;
    if (!a.measured) not_measured = a.measured.reason;
    if (a.measured && !a.measured->time) not_measured = a.measured->time.reason;
  }
  const std::string caveat = view.explain ? "" : "datasheet rates, a lower bound";
  const std::string& of_predicted = reason.empty() ? caveat : reason;
  const std::string measured = not_measured.empty() ? "" : "measured: " + not_measured + ".",
                    predicted = of_predicted.empty() ? "" : "predicted: " + of_predicted + ".";
  if (!measured.empty() || !predicted.empty())
    t.notes.push_back(measured + (measured.empty() || predicted.empty() ? "" : " ") + predicted);
  if (view.explain) explain_times(t, r);
  out.push_back(std::move(t));
}

}  // namespace hbmscope
