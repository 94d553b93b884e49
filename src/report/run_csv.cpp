#include "report/run_csv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/csv.hpp"

namespace hbmscope {
namespace {

/// What every row of a result repeats: the shape and the GPU.
std::string shape_cells(const RunResult& r) {
  const AttentionShape& s = r.request.shape;
  const auto edge = [](const std::optional<std::int64_t>& e) { return e ? fmt::format("{}", *e) : std::string(); };
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_field(r.request.gpu.name), r.request.pass,
                     s.batch, s.num_heads, s.num_kv_heads, s.seqlen_q, s.seqlen_kv, s.head_dim, s.head_dim_v,
                     info(s.dtype).name, s.mask.kind(), edge(s.mask.window_left), edge(s.mask.window_right),
                     name(s.mask.alignment), r.live_pairs.value());
}

class CsvWriter {
 public:
  explicit CsvWriter(const RunResult& r) : shape_(shape_cells(r)) {
    out_ = fmt::format(
        "gpu,pass,batch,num_heads,num_kv_heads,seqlen_q,seqlen_kv,head_dim,head_dim_v,dtype,mask,window_left,window_"
        "right,alignment,live_pairs,algorithm,{},stage,boundary,provenance,status,reason,tensor,read_bytes,write_bytes,"
        "total_bytes\n",
        kPlanColumns);
  }
  void entry(const AlgorithmResult& a, std::string_view stage, const TrafficEntry& e) {
    const std::string head =
        fmt::format("{},{},{},{},{},{},{},{}", shape_, a.algorithm->name, plan_cells(*a.algorithm, e.plan), stage,
                    name(e.boundary), name(e.provenance), name(e.traffic.status), csv_field(e.traffic.reason));
    if (!e.traffic) {
      out_ += head + ",,,,\n";
      return;
    }
    for (const TensorInfo& tensor : kTensors) {
      if (const ReadWrite& b = (*e.traffic)[tensor.tensor]; b.total().value() > 0) row(head, tensor.name, b);
    }
    row(head, "all", e.traffic->sum());
  }
  std::string take() { return std::move(out_); }

 private:
  void row(const std::string& head, std::string_view tensor, const ReadWrite& b) {
    out_ += fmt::format("{},{},{},{},{}\n", head, tensor, b.read.value(), b.write.value(), b.total().value());
  }
  std::string shape_, out_;
};

}  // namespace

std::string plan_cells(const Algorithm& algorithm, const TilePlan& plan) {
  const auto keys = algorithm.plan_keys;
  const bool clusters = std::find(keys.begin(), keys.end(), PlanKey::cluster) != keys.end();
  const auto side = [](std::int64_t n) { return n > 0 ? fmt::format("{}", n) : std::string(); };
  return fmt::format("{},{},{},{}", side(plan.block_q), side(plan.block_kv), clusters ? side(cluster_of(plan)) : "",
                     plan.gemm_tile ? fmt::format("{}x{}", (*plan.gemm_tile)[0], (*plan.gemm_tile)[1]) : "");
}

std::string run_to_csv(const RunResult& r) {
  CsvWriter csv(r);
  for (const AlgorithmResult& a : r.algorithms) {
    for (const TrafficEntry& e : a.traffic) csv.entry(a, "all", e);
    for (const StageResult& stage : a.stages) {
      for (const TrafficEntry& e : stage.traffic) csv.entry(a, stage.name, e);
    }
  }
  return csv.take();
}

}  // namespace hbmscope
