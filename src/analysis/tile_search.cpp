#include "analysis/tile_search.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "model/algorithm.hpp"

namespace hbmscope {
namespace {

AttentionShape shape_of(std::int64_t head_dim, std::int64_t seqlen, bool causal) {
  AttentionShape s;
  s.dtype = Dtype::bf16;
  s.batch = std::max<std::int64_t>(1, 16384 / seqlen);
  s.num_heads = s.num_kv_heads = std::max<std::int64_t>(1, 2048 / head_dim);
  s.seqlen_q = s.seqlen_kv = seqlen;
  s.head_dim = s.head_dim_v = head_dim;
  if (causal) s.mask = Mask::causal();
  return s;
}

std::vector<MeasureRequest::Item> kernels_for(const AttentionShape& shape) {
  TilePlan wanted;
  if (shape.mask.window_right) wanted.order = CtaOrder::longest_first;
  std::vector<MeasureRequest::Item> items;
  for (const auto& list : {kernels::pipelines(), kernels::candidates()}) {
    for (const kernels::Pipeline* pipeline : list) {
      const bool compared = pipeline->name == "flash_v2" || pipeline->algorithm == "flash_v3";
      if (compared && pipeline->unsupported(shape).empty()) {
        items.push_back({pipeline, pipeline->plan(shape, wanted), {}, {}});
      }
    }
  }
  return items;
}

double seconds_or_last(const PipelineMeasurement& kernel) {
  return kernel.time ? kernel.time->median : std::numeric_limits<double>::infinity();
}

}  // namespace

FlopPerSecond achieved(const PipelineMeasurement& kernel, const AttentionShape& shape) {
  return algorithm(kernel.pipeline->algorithm).flops(shape, kernel.plan).matmul / Seconds{kernel.time->median};
}

TileSearchResult search_tiles(const TileSearchRequest& request,
                              const std::function<void(const std::string&)>& progress) {
  const std::unique_ptr<Device> device = open_device(request.device);
  TileSearchResult result{device->properties(), !kernels::candidates().empty(), {}};
  for (const std::int64_t head_dim : request.head_dims) {
    for (const std::int64_t seqlen : request.seqlens) {
      for (const bool causal : {false, true}) {
        MeasureRequest work;
        work.shape = shape_of(head_dim, seqlen, causal);
        work.items = kernels_for(work.shape);
        if (work.items.empty()) {
          throw Error(ErrorKind::usage, "--head-dim " + std::to_string(head_dim) + ": no kernel takes it",
                      "take multiples of 8 up to 256");
        }
        if (memory_needed(work, result.device) > device->free_memory()) {
          throw Error(ErrorKind::device,
                      "--seqlen " + std::to_string(seqlen) + ": its tensors do not fit the device's memory",
                      "take shorter sequences");
        }
        if (progress) {
          progress(std::to_string(work.items.size()) + " kernels, head_dim " + std::to_string(head_dim) + ", " +
                   std::to_string(seqlen) + " tokens" + (causal ? ", causal" : ""));
        }
        TileSearch& search = result.searches.emplace_back(TileSearch{work.shape, measure_in_turns(*device, work)});
        std::stable_sort(search.kernels.begin(), search.kernels.end(),
                         [](const auto& a, const auto& b) { return seconds_or_last(a) < seconds_or_last(b); });
      }
    }
  }
  return result;
}

}  // namespace hbmscope
