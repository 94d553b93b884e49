#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/run_parts.hpp"
#include "json_schema.hpp"
#include "kernels/flash_v3_tiles.hpp"
#include "model/algorithm.hpp"
#include "model/plan_choice.hpp"
#include "reports/saved_runs.hpp"
#include "scenario/gpu_file.hpp"
#include "simulate/l2_model.hpp"

/// The saved runs, and what they are held against, for test_saved_*.cpp.
namespace hbmscope::testing {
using nlohmann::json;
using reports::entry, reports::l2_of, reports::plan_of, reports::predicted, reports::shape_of;

inline std::vector<json> saved(const std::string& name) {
  return reports::rows_of(std::string(HBMSCOPE_SOURCE_DIR) + "/reports/" + name);
}

/// Bytes of whole tiles: Hopper's copy engine fills with zeros what reaches beyond a tensor's last row, and the counter
/// of received bytes counts the zeros.
class WholeTiles : public TileListener {
 public:
  WholeTiles(const AttentionShape& shape, const TilePlan& plan) : shape_(shape), plan_(plan) {}
  void load(const TileId& tile, Bytes bytes) override {
    const bool of_queries = tile.tensor == Tensor::Q;
    const std::int64_t rows = of_queries ? plan_.block_q : plan_.block_kv;
    const std::int64_t whole = rows * flash_v3_width(shape_) * shape_.element_bytes();
    const std::int64_t receivers = of_queries ? 1 : cluster_of(plan_);
    bytes_ += static_cast<double>(receivers * std::max(whole, bytes.value()));
  }
  void store(const TileId&, Bytes) override {}
  [[nodiscard]] double bytes() const { return bytes_; }

 private:
  const AttentionShape& shape_;
  const TilePlan& plan_;
  double bytes_ = 0;
};

/// What the SMs are to receive: the closed form's reads, and for flash_v3 whole tiles, those of keys in each SM of a
/// cluster.
inline double received(const std::string& name, const AttentionShape& shape, const TilePlan& plan) {
  if (name != "flash_v3") return total(algorithm(name).closed_form(shape, plan)).sum().read.as_double();
  AttentionShape head = shape;  // all are alike
  head.batch = head.num_heads = head.num_kv_heads = 1;
  WholeTiles tiles(head, plan);
  walk(algorithm(name).walk(head, plan), tiles);
  return tiles.bytes() * static_cast<double>(shape.batch * shape.num_heads);
}

/// Calls `hold` with each entry of that provenance at SM-L2, its algorithm, shape and plan; returns how many.
template <class Hold>
inline int each_counted(std::initializer_list<const char*> names, const char* provenance, Hold&& hold) {
  int compared = 0;
  for (const char* name : names) {
    for (const json& run : saved(name)) {
      for (const json& a : run["algorithms"]) {
        const json* counted = entry(a, "sm_l2", provenance);
        if (counted == nullptr) continue;
        const std::string algorithm_name = a["name"];
        CAPTURE(algorithm_name);
        CAPTURE(run["shape"].dump());
        hold(*counted, algorithm_name, shape_of(run["shape"]), plan_of((*counted)["plan"]));
        ++compared;
      }
    }
  }
  return compared;
}

/// A counted run of an algorithm beside what the model predicts for it.
struct Held {
  const json& run;
  std::string algorithm;
  AttentionShape shape;
  TilePlan plan;
  double read, written;  ///< bytes counted
  json predicted;
};
template <class Hold>
inline void each_held_to_the_model(std::initializer_list<const char*> files, std::initializer_list<std::string> names,
                                   Hold&& hold) {
  std::map<std::string, json> lines;  // the predictions saved beside the runs: no need to simulate them once more
  const auto key = [](const json& shape, const json& name) { return name.dump() + shape.dump(); };
  for (const json& line : saved("h200/forward_model.jsonl")) lines[key(line["shape"], line["algorithm"])] = line;
  for (const std::string file : files) {
    const std::vector<json> runs = saved(file);
    const reports::ClockSpreads spreads = reports::clock_spreads(runs);
    for (const json& run : runs) {
      for (const json& a : run["algorithms"]) {
        const std::string name = a["name"];
        const json* counted = entry(a, "l2_hbm", "hw_counter");
        if (counted == nullptr || std::find(names.begin(), names.end(), name) == names.end()) continue;
        CAPTURE(name);
        CAPTURE(run["shape"].dump());
        CAPTURE((*counted)["plan"].dump());
        const bool forward = file == "h200/forward.jsonl";
        hold(Held{run, name, shape_of(run["shape"]), plan_of((*counted)["plan"]), (*counted)["read_bytes"],
                  (*counted)["write_bytes"], forward ? lines.at(key(run["shape"], name)) : predicted(run, a, spreads)});
      }
    }
  }
}

}  // namespace hbmscope::testing
