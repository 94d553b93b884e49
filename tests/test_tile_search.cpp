// The tile search without a GPU: its list of candidates, and what it makes of measurements.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "kernels/flash_v3_tiles.hpp"
#include "report/tile_search_report.hpp"

using namespace hbmscope;
using namespace hbmscope::kernels;

namespace {

/// A row of the table, as the compiler sees it: FlashV3Tile's own assertions hold for each.
struct Row {
  std::string name;
  int head_dim, block_q, block_kv, cluster, stages;
  FlashV3Choice choice;
};
template <int kD, FlashV3Choice kC>
Row row_of(const char* name) {
  using Tile = FlashV3Tile<kD, kC>;
  static_assert(Tile::kSmem > 0);
  return {name, kD, Tile::kBlockQ, Tile::kBlockKv, Tile::kCluster, Tile::kStages, kC};
}
const std::vector<Row>& table() {
#define HBMSCOPE_CANDIDATE(name, head_dim, ...) row_of<head_dim, FlashV3Choice{__VA_ARGS__}>(#name),
  static const std::vector<Row> rows{
#include "kernels/flash_v3_candidates.def"
  };
#undef HBMSCOPE_CANDIDATE
  return rows;
}

std::string name_of(const Row& row) {
  std::string name =
      "d" + std::to_string(row.head_dim) + "_" + std::to_string(row.block_q) + "x" + std::to_string(row.block_kv);
  if (row.choice.q_in_registers) name += "_q";
  if (row.choice.in_turn == InTurn::first_scores) name += "_first";
  if (row.choice.in_turn == InTurn::products) name += "_turns";
  if (!row.choice.stays) name += "_grid";
  if (row.cluster > 1) name += "_cluster";
  if (row.stages != 2) name += "_s" + std::to_string(row.stages);
  return name;
}

const Pipeline kFast{"fast", "flash_v3", "", nullptr, nullptr, nullptr, nullptr};
const Pipeline kWrong{"wrong", "flash_v3", "", nullptr, nullptr, nullptr, nullptr};

PipelineMeasurement kernel(const Pipeline& pipeline, double seconds) {
  PipelineMeasurement k;
  k.pipeline = &pipeline;
  k.plan.block_q = 192, k.plan.block_kv = 128, k.plan.stages = 2;
  k.stages.emplace_back().name = "fused";
  k.stages[0].resources = Known<KernelResources>::of({168, 99456, 0});
  k.exactness = Known<ForeignExactness>::of({});
  k.bit_identical = Known<bool>::of(true);
  TimeSamples samples{};
  samples.seconds = {seconds, seconds, 2 * seconds};
  samples.median = seconds;
  k.time = Known<TimeSamples>::of(samples);
  return k;
}

TileSearchResult result_of_two() {
  TileSearchResult result{{}, true, {}};
  result.device.name = "some GPU";
  TileSearch& search = result.searches.emplace_back();
  search.shape.dtype = Dtype::bf16;
  search.shape.num_heads = search.shape.num_kv_heads = 16;
  search.shape.seqlen_q = search.shape.seqlen_kv = 8192;
  search.shape.head_dim = search.shape.head_dim_v = 128;
  search.kernels.push_back(kernel(kFast, 1e-3));
  search.kernels.push_back(kernel(kWrong, 1));
  search.kernels[1].exactness.status = Status::failed;
  search.kernels[1].time = Known<TimeSamples>::missing(Status::failed, "not timed: the error is too large");
  search.kernels[1].stages[0].resources =
      Known<KernelResources>::missing(Status::failed, "not timed: the error is too large");
  return result;
}

}  // namespace

TEST_CASE("candidates of the tile search differ, and their names say what is chosen") {
  std::set<std::string> names;
  for (const Row& row : table()) {
    CAPTURE(row.name);
    CHECK(row.name == name_of(row));
    CHECK(names.insert(row.name).second);
  }
  for (const int head_dim : {64, 128, 256}) {
    CHECK(std::count_if(table().begin(), table().end(), [&](const Row& r) { return r.head_dim == head_dim; }) >= 5);
  }
  CHECK(std::any_of(table().begin(), table().end(), [](const Row& r) { return r.cluster > 1; }));
}

TEST_CASE("first scores are taken in turn where CTAs fall behind otherwise, and not where that costs time") {
  struct Sum {
    double behind = 0, work = 0;  // CTAs, and TFLOP/s over all shapes
  };
  std::map<std::string, std::array<Sum, 2>> tiles;  // nothing in turn, first scores
  std::ifstream file(std::string(HBMSCOPE_SOURCE_DIR) + "/reports/h200/first_scores.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row["shape"]["seqlen"] < 4096) continue;  // of short launches the start and the end are no small part
    Sum& sum = tiles[row["shape"]["head_dim"].dump() + ": " + row["tile"].get<std::string>()]
                    [row["in_turn"] == "first_scores" ? 1 : 0];
    sum.behind += row["ctas_behind"].get<double>();
    sum.work += row["tflops_median"].get<double>();
  }
  REQUIRE(tiles.size() == 5);
  const auto& [nothing, first] = tiles.at("128: 128x128");
  CHECK(nothing.behind > 100);
  CHECK(first.behind == 0);
  for (const char* name : {"128: 128x128", "128: 128x176"})
    CHECK(tiles.at(name)[1].work > 0.99 * tiles.at(name)[0].work);
  static_assert(FlashV3Tile128::kInTurn == InTurn::first_scores && FlashV3Tile128Long::kInTurn == InTurn::first_scores);
  CHECK(tiles.at("64: 128x128")[1].work < 0.97 * tiles.at("64: 128x128")[0].work);
  CHECK(tiles.at("256: 128x80")[0].behind == 0);
  static_assert(FlashV3Tile64::kInTurn == InTurn::nothing && FlashV3Tile64Short::kInTurn == InTurn::nothing &&
                FlashV3Tile256::kInTurn == InTurn::nothing);
}

TEST_CASE("a search's table has the work per second of each kernel, and why one has none") {
  const std::string text = to_text(tile_search_document(result_of_two()), 120, false);
  CAPTURE(text);
  // 4 x 16 heads x 8192^2 x 128 FLOP in a millisecond.
  CHECK(text.find("549.8 TFLOP/s") != std::string::npos);
  CHECK(text.find("192 x 128") != std::string::npos);
  CHECK(text.find("99,456") != std::string::npos);
  CHECK(text.find("wrong: not timed: the error is too large.") != std::string::npos);
}

TEST_CASE("a search's JSON has samples and reasons") {
  const auto json = tile_search_to_json(result_of_two(), {"hbmscope", "gpu", "tiles"});
  const auto& kernels = json["tile_searches"][0]["kernels"];
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0]["time"]["measured_samples_s"].size() == 3);
  CHECK(kernels[0]["time"]["measured_median_s"] == 1e-3);
  CHECK(kernels[0]["achieved_flop_per_s"].get<double>() == doctest::Approx(4.0 * 16 * 8192 * 8192 * 128 / 1e-3));
  CHECK(kernels[0]["kernel"]["registers"] == 168);
  CHECK(kernels[1]["time"]["measured_median_s"].is_null());
  CHECK(kernels[1]["time"]["reason"] == "not timed: the error is too large");
  CHECK(kernels[1]["achieved_flop_per_s"].is_null());
  CHECK(kernels[1]["kernel"]["registers"].is_null());
}

TEST_CASE("without a GPU there is nothing to search, and the reason is the device's") {
  if (device_status().present) return;
  CHECK_THROWS_WITH_AS(search_tiles({}), doctest::Contains(device_status().reason.c_str()), Error);
}
