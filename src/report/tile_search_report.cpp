#include "report/tile_search_report.hpp"

#include <fmt/format.h>

#include "core/version.hpp"
#include "report/format.hpp"
#include "report/run_json_parts.hpp"
#include "scenario/batch_line.hpp"

namespace hbmscope {
namespace {

using run_json::Json;

std::string_view mask_word(const AttentionShape& s) {
  return s.mask.window_right ? "causal" : "none";
}

std::vector<std::string> row_of(const PipelineMeasurement& kernel, const TileSearch& search) {
  const TilePlan& plan = kernel.plan;
  const auto& resources = kernel.stages.front().resources;
  const PipelineMeasurement& best = search.kernels.front();
  const bool timed = static_cast<bool>(kernel.time);
  return {std::string(kernel.pipeline->name),
          fmt::format("{} x {}", plan.block_q, plan.block_kv),
          text::integer(plan.stages),
          text::integer(plan.cluster),
          resources ? text::integer(resources->registers) : "-",
          resources ? text::integer(resources->smem_bytes) : "-",
          resources ? text::integer(resources->local_bytes) : "-",
          timed ? text::flop_rate(achieved(kernel, search.shape)) : "-",
          timed ? text::percent(best.time->median / kernel.time->median) : "-"};
}

Table table_of(const TileSearch& search) {
  const AttentionShape& s = search.shape;
  Table t{fmt::format("head_dim {}, {} x {} heads of {} tokens, mask {}", s.head_dim, s.batch, s.num_heads,
                      text::integer(s.seqlen_q), mask_word(s)),
          {{"kernel", false},
           {"tile"},
           {"stages"},
           {"cluster"},
           {"registers"},
           {"SMEM B"},
           {"local B"},
           {"measured"},
           {"of the best"}},
          {},
          {}};
  for (const PipelineMeasurement& kernel : search.kernels) {
    t.rows.push_back(row_of(kernel, search));
    if (!kernel.time) t.notes.push_back(fmt::format("{}: {}.", kernel.pipeline->name, kernel.time.reason));
  }
  return t;
}

Json kernel_json(const PipelineMeasurement& kernel, const TileSearch& search) {
  Json out = {{"name", kernel.pipeline->name}, {"algorithm", kernel.pipeline->algorithm}};
  out["plan"] = plan_to_json(kernel.plan, algorithm(kernel.pipeline->algorithm).plan_keys);
  out["kernel"] = run_json::resources_json(kernel.stages.front().resources);
  Json& check = out["verified"];
  run_json::add_status(check, kernel.exactness);
  check["max_abs_error"] = kernel.exactness ? run_json::real(kernel.exactness->exactness.max_abs_error) : Json(nullptr);
  check["bit_identical"] = kernel.bit_identical ? Json(*kernel.bit_identical) : Json(nullptr);
  Json& time = out["time"];
  run_json::add_status(time, kernel.time);
  time["measured_median_s"] = kernel.time ? run_json::real(kernel.time->median) : Json(nullptr);
  time["measured_samples_s"] = kernel.time ? Json(kernel.time->seconds) : Json::array();
  time["clocks"] = kernel.time ? run_json::clocks_json(kernel.time->clocks) : Json(nullptr);
  out["achieved_flop_per_s"] = kernel.time ? run_json::real(achieved(kernel, search.shape).value) : Json(nullptr);
  return out;
}

}  // namespace

Document tile_search_document(const TileSearchResult& result) {
  Document out;
  out.push_back(Paragraph{fmt::format("hbmscope {}   gpu tiles   {}, driver {}, CUDA {}", hbmscope_version(),
                                      result.device.name, result.device.driver, result.device.runtime)});
  for (const TileSearch& search : result.searches) out.push_back(table_of(search));
  out.push_back(Labelled{"Measured",
                         "bf16, a cold L2, the kernels of a shape in turns; each was held against fp64 first. "
                         "A name gives what differs: rows x keys of a tile, q: Q in registers, "
                         "turns: products one warpgroup after the other, first: only the first scores of a query tile, "
                         "grid: a CTA for each query tile, cluster: multicast, s3: three stages"});
  if (!result.has_candidates) {
    out.push_back(Labelled{"Candidates",
                           "none in this build; HBMSCOPE_CMAKE_ARGS=-DHBMSCOPE_TILE_SEARCH=ON ./dev "
                           "hbmscope gpu tiles compiles those of kernels/flash_v3_candidates.def"});
  }
  return out;
}

Json tile_search_to_json(const TileSearchResult& result, const std::vector<std::string>& argv) {
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["meta"] = {{"tool", "hbmscope"},
                 {"version", hbmscope_version()},
                 {"git", hbmscope_git_revision()},
                 {"argv", argv},
                 {"gpu", result.device.name},
                 {"gpu_driver", result.device.driver},
                 {"cuda_runtime", result.device.runtime}};
  out["tile_searches"] = Json::array();
  for (const TileSearch& search : result.searches) {
    Json kernels = Json::array();
    for (const PipelineMeasurement& kernel : search.kernels) kernels.push_back(kernel_json(kernel, search));
    out["tile_searches"].push_back({{"shape", shape_to_json(search.shape)}, {"kernels", kernels}});
  }
  return out;
}

}  // namespace hbmscope
