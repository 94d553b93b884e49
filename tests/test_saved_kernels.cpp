// The kernels of runs saved under reports/: which is the fastest, its tiles, rungs and dtypes.
#include "saved_cases.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

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

TEST_CASE(
    "naive with 8 heads of 8,192 tokens, head_dim 128: each product within 1.25x of cuBLAS in the same run, softmax at "
    "90 % of a measured copy or more, at most 1.5 ms in all") {
  int compared = 0;
  for (const json& run : saved("h200/naive.jsonl")) {
    std::map<std::string, std::map<std::string, double>> seconds;  // by pipeline and stage
    for (const json& pipeline : run["device"]["pipelines"]) {
      CHECK(pipeline["verified"]["status"] == "ok");
      for (const json& stage : pipeline["stages"]) {
        seconds[pipeline["name"]][stage["name"]] = stage["measured_median_s"];
      }
    }
    auto &naive = seconds.at("naive"), &cublas = seconds.at("naive_cublas");
    const AttentionShape shape = shape_of(run["shape"]);
    if (shape.head_dim != 128) continue;
    CHECK(shape.num_heads * shape.batch == 8);
    CHECK(shape.seqlen_q == 8192);
    CHECK(naive.at("qk") <= 1.25 * cublas.at("qk"));
    CHECK(naive.at("pv") <= 1.25 * cublas.at("pv"));
    const json& roofs = run["gpu"]["roofs"];
    const auto copy = std::find_if(roofs.begin(), roofs.end(), [](const json& roof) {
      return roof["name"] == "copy" && roof["from"] == "measured";
    });
    REQUIRE(copy != roofs.end());
    const double scores = 8.0 * 8192 * 8192 * 2;  // bytes of S, and of P
    CHECK(2 * scores / naive.at("softmax") >= 0.9 * (*copy)["rate"].get<double>());
    CHECK(naive.at("qk") + naive.at("softmax") + naive.at("pv") <= 1.5e-3);
    ++compared;
  }
  CHECK(compared == 1);
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
  const auto but_dtype = [](json shape) {
    shape.erase("dtype");
    return shape.dump();
  };
  const auto seconds = [](const json& run) {
    return run["device"]["pipelines"][0]["time"]["measured_median_s"].get<double>();
  };
  for (const json& run : runs) {
    if (run["shape"]["dtype"] == "bf16") bf16[but_dtype(run["shape"])] = seconds(run);
  }
  for (const json& run : runs) {
    if (run["shape"]["dtype"] != "fp8") continue;
    CAPTURE(run["shape"].dump());
    const json& verified = run["device"]["pipelines"][0]["verified"];
    CHECK(verified["status"] == "ok");
    CHECK(verified["bit_identical"] == true);
    // The tolerance of then was twice naive's error and an ulp; of long rows naive in fp8 makes next to nothing.
    const auto number = [&](const char* key) { return verified[key].get<double>(); };
    CHECK(number("max_abs_error") <= number("tolerance") - 2 * number("naive_max_abs_error"));
    if (run["shape"]["head_dim"] > 64) CHECK(seconds(run) < bf16.at(but_dtype(run["shape"])));
    const json &a = run["algorithms"][0], *counted = entry(a, "l2_hbm", "hw_counter");
    REQUIRE(counted != nullptr);
    const double simulated = predicted(run, a, spreads)["l2_hbm"]["read_bytes"];
    CHECK(std::fabs((*counted)["read_bytes"].get<double>() / simulated - 1) <
          (a["kv_in_flight_bytes"].get<double>() <= 15 * 1048576.0 ? 0.01 : 0.05));
    ++compared;
  }
  CHECK(compared == 24);
}

TEST_CASE("a run with every measured part filled in is what the schema says") {
  std::ifstream file(std::string(HBMSCOPE_SOURCE_DIR) + "/docs/schema/run.schema.json");
  const hbmscope::testing::JsonSchema schema(json::parse(file));
  for (const char* name : {"h200/forward.jsonl", "h200/orders.jsonl", "h200/fp8.jsonl", "h200/naive.jsonl"}) {
    const std::vector<json> runs = saved(name);
    REQUIRE(!runs.empty());
    for (const json& run : runs) {
      const std::vector<std::string> errors = schema.errors(run);
      CAPTURE(run["shape"].dump());
      CHECK_MESSAGE(errors.empty(), (errors.empty() ? "" : errors.front()));
    }
  }
}
