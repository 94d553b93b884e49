// Runs saved under reports/ are held against the model as it is now: a change of the model that its measurements do not
// bear out fails here, on machines without a GPU too.
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

using namespace hbmscope;
using nlohmann::json;
using reports::entry, reports::l2_of, reports::plan_of, reports::predicted, reports::shape_of;

namespace {

std::vector<json> saved(const std::string& name) {
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
double received(const std::string& name, const AttentionShape& shape, const TilePlan& plan) {
  if (name != "flash_v3") return total(algorithm(name).closed_form(shape, plan)).sum().read.as_double();
  AttentionShape head = shape;  // all are alike
  head.batch = head.num_heads = head.num_kv_heads = 1;
  WholeTiles tiles(head, plan);
  walk(algorithm(name).walk(head, plan), tiles);
  return tiles.bytes() * static_cast<double>(shape.batch * shape.num_heads);
}

/// Calls `hold` with each entry of that provenance at SM-L2, its algorithm, shape and plan; returns how many.
template <class Hold>
int each_counted(std::initializer_list<const char*> names, const char* provenance, Hold&& hold) {
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
void each_held_to_the_model(std::initializer_list<const char*> files, std::initializer_list<std::string> names,
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

}  // namespace

TEST_CASE("what kernels counted on an H200 is what the closed forms say, tensor by tensor") {
  const int compared = each_counted(
      {"h200/forward.jsonl", "h200/orders.jsonl", "h200/ladder.jsonl", "h200/cluster.jsonl", "h200/fp8.jsonl"},
      "kernel_counter",
      [](const json& counted, const std::string& name, const AttentionShape& shape, const TilePlan& plan) {
        const Traffic expected = total(algorithm(name).closed_form(shape, plan));
        const json none = {{"read_bytes", 0}, {"write_bytes", 0}};
        for (const TensorInfo& t : kTensors) {
          CAPTURE(t.name);
          const json& tensors = counted["tensors"];
          const json& mine = tensors.contains(t.name) ? tensors[std::string(t.name)] : none;
          CHECK(mine["read_bytes"] == expected[t.tensor].read.value());
          CHECK(mine["write_bytes"] == expected[t.tensor].write.value());
        }
      });
  CHECK(compared >= 100);
}

TEST_CASE(
    "what the SMs received on an H200 is within half a per cent of the closed forms, of whole tiles for flash_v3") {
  const int compared =
      each_counted({"h200/forward.jsonl", "h200/fp8.jsonl"}, "hw_counter",
                   [](const json& counted, const std::string& name, const AttentionShape& shape, const TilePlan& plan) {
                     const double read = counted["read_bytes"];
                     CHECK(std::fabs(read / received(name, shape, plan) - 1) < 0.005);
                   });
  CHECK(compared >= 150);
}

TEST_CASE(
    "the predictions beside the saved runs are those of the model as it is: else hbmscope_predict writes them anew") {
  const std::vector<json> lines = saved("h200/forward_model.jsonl");
  std::map<std::string, json> unmasked;  // naive moves as much under a mask: no need to simulate it twice
  std::size_t at = 0;
  const std::vector<json> runs = saved("h200/forward.jsonl");
  const reports::ClockSpreads spreads = reports::clock_spreads(runs);
  for (const json& run : runs) {
    for (const json& a : run["algorithms"]) {
      if (entry(a, "l2_hbm", "simulated") == nullptr) continue;
      REQUIRE(at < lines.size());
      const json& line = lines[at++];
      const bool naive = a["name"] == "naive";
      const std::string size = run["shape"]["seqlen_q"].dump() + ", " + run["shape"]["head_dim"].dump();
      if (naive && unmasked.contains(size)) {
        CHECK(line["l2_hbm"] == unmasked[size]);
        CHECK(line["stages"].size() == 3);
        continue;
      }
      CHECK(line == predicted(run, a, spreads));
      if (naive) unmasked[size] = line["l2_hbm"];
    }
  }
  CHECK(at == lines.size());
  CHECK(at >= 150);
}

TEST_CASE(
    "simulated with the clocks of their launches, HBM reads of flash_v2 and flash_v3 on an H200 are within 22 % of "
    "those counted, but for one run, and where K and V in flight take at most 15 MiB and no mask "
    "hides a tile within 0.2 % and 0.5 %") {
  int compared = 0, fitting = 0, side_by_side = 0;
  each_held_to_the_model({"h200/forward.jsonl", "h200/orders.jsonl"}, {"flash_v2", "flash_v3"}, [&](const Held& held) {
    const bool v3 = held.algorithm == "flash_v3";
    const double off = held.predicted["l2_hbm"]["read_bytes"].get<double>() / held.read - 1;
    ++compared;
    // docs/l2-model.md, what is still off: heads side by side, of 256 columns.
    if (!v3 && held.shape.head_dim == 256 && held.plan.order == CtaOrder::longest_first_interleaved &&
        held.shape.seqlen_q == 8192) {
      CHECK(std::fabs(off) < 0.25);
      ++side_by_side;
      return;
    }
    const bool masked = held.shape.mask != Mask::none(), upwards = held.plan.order == CtaOrder::ascending;
    const bool as_large_as_l2 = v3 && !masked && held.shape.seqlen_q == 65536 && held.shape.head_dim == 64;
    CHECK(std::fabs(off) < (as_large_as_l2 || (masked && upwards) ? 0.22 : 0.2));
    const std::vector<KernelWalk> kernels = algorithm(held.algorithm).walk(held.shape, held.plan);
    if (held.shape.mask == Mask::none() &&
        kv_in_flight(kernels[0], held.shape, l2_of(held.run), held.plan.order) <= Bytes(15 << 20)) {
      CHECK(std::fabs(off) < (v3 ? 0.005 : 0.002));
      ++fitting;
    }
  });
  CHECK(compared == 117);
  CHECK(fitting == 15);
  CHECK(side_by_side == 1);
}

TEST_CASE("the younger of two CTAs on an SM loses to the older what the times of CTAs on an H200 say") {
  int held = 0;
  for (const json& launch : saved("h200/ctas.jsonl")) {
    CAPTURE(launch["shape"].dump());
    if (launch["shape"]["seqlen"] < 32768) continue;  // the start of a launch is no small part of shorter ones
    AttentionShape shape;
    shape.seqlen_q = shape.seqlen_kv = launch["shape"]["seqlen"];
    shape.head_dim = shape.head_dim_v = launch["shape"]["head_dim"];
    TilePlan plan;
    plan.block_q = plan.block_kv = 64;
    plan.stages = shape.head_dim > 128 ? 1 : 2;  // as the kernels have them
    const double stall = algorithm("flash_v2").walk(shape, plan)[0].younger_stall;
    CHECK(std::fabs(stall - launch["younger_stall"]["median"].get<double>()) < 0.005);
    CHECK(launch["younger_stall"]["most"].get<double>() - launch["younger_stall"]["least"].get<double>() < 0.04);
    CHECK(launch["apart_later_passes"].get<double>() > 0.3);
    ++held;
  }
  CHECK(held == 9);
}

TEST_CASE("under a causal mask heads go one after the other where that is as fast, and there they read less HBM") {
  std::map<std::string, std::map<CtaOrder, json>> measured;
  for (const json& row : saved("h200/order_times.jsonl")) {
    measured[row["algorithm"].get<std::string>() + row["shape"].dump()][plan_of(row["plan"]).order] = row;
  }
  int by_head = 0;
  for (const auto& [name, orders] : measured) {
    CAPTURE(name);
    const json &one = orders.at(CtaOrder::longest_first), &all = orders.at(CtaOrder::longest_first_interleaved);
    const CtaOrder chosen =
        causal_order(one["algorithm"].get<std::string>(), shape_of(one["shape"]), plan_of(one["plan"]), 132);
    const auto seconds = [](const json& row) { return row["measured_median_s"].get<double>(); };
    CHECK(seconds(orders.at(chosen)) < 1.025 * std::min(seconds(one), seconds(all)));
    if (chosen != CtaOrder::longest_first) continue;
    CHECK(one["hbm_read_bytes"].get<double>() < all["hbm_read_bytes"].get<double>() / 1.9);
    ++by_head;
  }
  CHECK(measured.size() == 30);
  CHECK(by_head == 13);
}

TEST_CASE("simulated with the clocks that its SMs had, a launch's HBM reads are within a fifth of those counted") {
  const std::vector<json> lines = saved("h200/drift_model.jsonl");
  std::size_t at = 0;
  for (const json& launch : saved("h200/drift.jsonl")) {
    const json& run = launch["run"];
    CAPTURE(launch["gpu_number"].dump() + ", " + launch["heads"].dump());
    REQUIRE(at < lines.size());
    const json &line = lines[at++], &counted = run["algorithms"][0]["traffic"][0];
    CHECK(line["shape"] == run["shape"]);
    if (run["shape"]["num_heads"] <= 2) CHECK(line == predicted(run, run["algorithms"][0]));
    CHECK(line["l2_hbm"]["read_bytes"].get<double>() ==
          doctest::Approx(counted["read_bytes"].get<double>()).epsilon(0.2));
    // A pass takes all SMs equally many cycles, though some find tiles in L2 that others fetched from HBM.
    const json& cycles = launch["cycles_of_a_pass"];
    CHECK(cycles["most"].get<double>() < 1.005 * cycles["least"].get<double>());
  }
  CHECK(at == 9);
}

TEST_CASE(
    "the HBM reads of naive on an H200 are within 1.5 % of the L2 model's, within 1.7 % at N = 131,072; its writes "
    "within 0.1 %") {
  int compared = 0;
  each_held_to_the_model({"h200/forward.jsonl"}, {"naive"}, [&](const Held& held) {
    CHECK(held.plan.softmax_reads == 1);
    const double off_by = std::fabs(held.read / held.predicted["l2_hbm"]["read_bytes"].get<double>() - 1);
    CHECK(off_by < (held.shape.seqlen_q > 65536 ? 0.017 : 0.015));
    CHECK(std::fabs(held.written / held.predicted["l2_hbm"]["write_bytes"].get<double>() - 1) < 0.001);
    // By stage: what S = Q K^T has to fetch, as a share of all that its SMs ask for; and softmax.
    for (const json& pipeline : held.run["device"]["pipelines"]) {
      if (pipeline["name"] != "naive") continue;
      const auto off = [&](std::size_t stage) {
        const json& hw = pipeline["stages"][stage]["hw"];
        const double expected = held.predicted["stages"][stage]["read_bytes"];
        return std::fabs(hw["l2_hbm_read_bytes"].get<double>() - expected) / hw["sm_l2_read_bytes"].get<double>();
      };
      CHECK(off(0) < 0.014);
      CHECK(off(1) < 0.0005);
    }
    ++compared;
  });
  CHECK(compared == 50);
}

TEST_CASE("flash names the kernel that was the faster in each saved shape, or within the spread of two runs") {
  std::map<std::string, std::map<std::string, double>> rates;
  std::map<std::string, AttentionShape> shapes;
  for (const json& run : saved("h200/peers.jsonl")) {
    const std::string at = run["shape"].dump();
    rates[at][run["implementation"]] = run["tflops"];
    shapes[at] = shape_of(run["shape"]);
  }
  int compared = 0;
  for (const auto& [at, rate] : rates) {
    CAPTURE(at);
    const double named = rate.at(std::string(fastest_flash(shapes.at(at), embedded_gpu("H200"))));
    CHECK(named > 0.97 * std::max(rate.at("flash_v2"), rate.at("flash_v3")));
    ++compared;
  }
  CHECK(compared == 36);
}

TEST_CASE(
    "what a cluster asks for once arrives twice: L2 looks up the closed form's bytes, the SMs receive K and V each") {
  int compared = 0;
  for (const json& run : saved("h200/cluster.jsonl")) {
    const json& a = run["algorithms"][0];
    CHECK(a["plan"]["cluster"] == 2);
    const AttentionShape shape = shape_of(run["shape"]);
    const Traffic asked = total(algorithm("flash_v3").closed_form(shape, plan_of(a["plan"])));
    const std::int64_t keys = asked[Tensor::K].read.value() + asked[Tensor::V].read.value();
    const json& hw = run["device"]["pipelines"][0]["hw"];
    const double received = hw["sm_l2_read_bytes"], looked_up = hw["l2_lookup_bytes"];
    const auto reads = static_cast<double>(asked.sum().read.value());
    CHECK(std::fabs(received / (reads + static_cast<double>(keys)) - 1) < 0.01);  // 80 keys a tile: zeros past the end
    CHECK(std::fabs(looked_up / reads - 1) < 0.03);
    ++compared;
  }
  CHECK(compared == 2);
}

TEST_CASE("the tiles that ship are within 3 % of the fastest that the search found, for each shape it timed") {
  const json search = saved("h200/tiles.json").at(0);
  for (const json& one : search["tile_searches"]) {
    CAPTURE(one["shape"].dump());
    double best = 0, shipped = 0;
    for (const json& kernel : one["kernels"]) {
      CHECK(kernel["verified"]["status"] == "ok");
      CHECK(kernel["verified"]["bit_identical"] == true);
      const double rate = kernel["achieved_flop_per_s"];
      best = std::max(best, rate);
      const AttentionShape shape = shape_of(one["shape"]);
      const QueryTile fastest = flash_v3_tile(shape);
      TilePlan plan;
      plan.block_q = fastest.block_q, plan.block_kv = fastest.block_kv, plan.cluster = fastest.cluster;
      kernels::with_flash_v3_tile(shape.head_dim, shape.head_dim_v, plan, [&](auto tile) {
        using Tile = decltype(tile);
        const std::string name = "d" + std::to_string(Tile::kHeadDim) + "_" + std::to_string(Tile::kBlockQ) + "x" +
                                 std::to_string(Tile::kBlockKv) + (Tile::kQInRegisters ? "_q" : "") +
                                 (Tile::kInTurn == kernels::InTurn::first_scores ? "_first" : "") +
                                 (Tile::kCluster > 1 ? "_cluster" : "");
        if (kernel["name"] == name) shipped = rate;
      });
    }
    CHECK(shipped > 0.97 * best);
  }
  CHECK(search["tile_searches"].size() == 18);
}

TEST_CASE("the rungs below flash_v3 are right, deterministic, and receive the bytes that it receives") {
  int rungs = 0;
  for (const json& run : saved("h200/ladder.jsonl")) {
    const AttentionShape shape = shape_of(run["shape"]);
    for (const json& pipeline : run["device"]["pipelines"]) {
      if (pipeline["algorithm"] != "flash_v3") continue;
      CAPTURE(run["shape"].dump());
      CAPTURE(pipeline["name"].dump());
      CHECK(pipeline["verified"]["status"] == "ok");
      CHECK(pipeline["verified"]["bit_identical"] == true);
      const double counted = pipeline["hw"]["sm_l2_read_bytes"].get<double>();
      CHECK(std::fabs(counted / received("flash_v3", shape, plan_of(pipeline["plan"])) - 1) < 0.005);
      rungs += pipeline["name"] != "flash_v3";
    }
  }
  CHECK(rungs == 6 * 5);
}

TEST_CASE(
    "fp8 on an H200: O within one unit in the last place of its largest element, the same bits twice, faster than bf16 "
    "beyond 64 columns, and HBM reads within 1 % of the simulated, or 5 % where K and V in flight exceed 15 MiB") {
  std::map<std::string, double> bf16;  // by shape but for dtype
  int compared = 0;
  const std::vector<json> runs = saved("h200/fp8.jsonl");
  const reports::ClockSpreads spreads = reports::clock_spreads(runs);
  for (const bool reading : {true, false}) {
    for (const json& run : runs) {
      json shape = run["shape"];
      CAPTURE(shape.dump());
      const bool fp8 = shape["dtype"] == "fp8";
      shape.erase("dtype");
      const json& pipeline = run["device"]["pipelines"][0];
      const double seconds = pipeline["time"]["measured_median_s"];
      if (reading && !fp8) bf16[shape.dump()] = seconds;
      if (reading || !fp8) continue;
      CHECK(pipeline["verified"]["status"] == "ok");
      CHECK(pipeline["verified"]["bit_identical"] == true);
      // The tolerance of then, twice naive's error and an ulp: of long rows naive in fp8 makes next to nothing.
      const auto verified = [&](const char* key) { return pipeline["verified"][key].get<double>(); };
      CHECK(verified("max_abs_error") <= verified("tolerance") - 2 * verified("naive_max_abs_error"));
      if (run["shape"]["head_dim"] > 64) CHECK(seconds < bf16.at(shape.dump()));
      const json &a = run["algorithms"][0], *counted = entry(a, "l2_hbm", "hw_counter");
      REQUIRE(counted != nullptr);
      const json held = predicted(run, a, spreads);
      CHECK(std::fabs((*counted)["read_bytes"].get<double>() / held["l2_hbm"]["read_bytes"].get<double>() - 1) <
            (a["kv_in_flight_bytes"].get<double>() <= 15 * 1048576.0 ? 0.01 : 0.05));
      ++compared;
    }
  }
  CHECK(compared == 24);
}

TEST_CASE("a run with every measured part filled in is what the schema says") {
  std::ifstream file(std::string(HBMSCOPE_SOURCE_DIR) + "/docs/schema/run.schema.json");
  const hbmscope::testing::JsonSchema schema(json::parse(file));
  for (const char* name : {"h200/forward.jsonl", "h200/orders.jsonl", "h200/fp8.jsonl"}) {
    const std::vector<json> runs = saved(name);
    REQUIRE(!runs.empty());
    for (const json& run : runs) {
      const std::vector<std::string> errors = schema.errors(run);
      CAPTURE(run["shape"].dump());
      CHECK_MESSAGE(errors.empty(), (errors.empty() ? "" : errors.front()));
    }
  }
}
