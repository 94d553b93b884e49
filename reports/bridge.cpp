/// The kernels behind a C interface, so that a script times them and other libraries' in one process, with one clock and
/// on one stream of one GPU: see peers.py. Target hbmscope_bridge.
#include <cstdint>
#include <exception>

#include "core/error.hpp"
#include "core/version.hpp"
#include "kernels/attention.hpp"

namespace {
using namespace hbmscope;

/// All pipelines and then, in a build for the tile search, its candidates.
const kernels::Pipeline* nth(std::size_t n) {
  const auto shipped = kernels::pipelines(), candidates = kernels::candidates();
  if (n < shipped.size()) return shipped[n];
  return n - shipped.size() < candidates.size() ? candidates[n - shipped.size()] : nullptr;
}

}  // namespace

extern "C" {

/// The git revision that this library was built from.
const char* hbmscope_revision() { return hbmscope_git_revision().data(); }

/// Name of the nth pipeline, or null beyond the last.
const char* hbmscope_pipeline(int n) {
  const kernels::Pipeline* pipeline = n >= 0 ? nth(static_cast<std::size_t>(n)) : nullptr;
  return pipeline != nullptr ? pipeline->name.data() : nullptr;
}

/// Starts the nth pipeline on bf16 [batch, heads, seqlen, head_dim] tensors; causal starts the longest tiles first.
/// 0, or 1 where the pipeline does not take the shape or needs memory besides these tensors, or 2 where it fails.
int hbmscope_start(int n, int batch, int heads, int seqlen, int head_dim, int causal, void* q, void* k, void* v, void* o,
                   void* lse, void* stream) try {
  AttentionShape shape;
  shape.dtype = Dtype::bf16;
  shape.batch = batch;
  shape.num_heads = shape.num_kv_heads = heads;
  shape.seqlen_q = shape.seqlen_kv = seqlen;
  shape.head_dim = shape.head_dim_v = head_dim;
  if (causal != 0) shape.mask = Mask::causal();
  const kernels::Pipeline& pipeline = *nth(static_cast<std::size_t>(n));
  if (!pipeline.unsupported(shape).empty()) return 1;
  TilePlan plan;
  if (causal != 0) plan.order = CtaOrder::longest_first;
  plan = pipeline.plan(shape, plan);
  if (!pipeline.temporaries(shape, plan).empty()) return 1;
  kernels::Call call;
  call.args = kernels::make_args(shape, plan);
  call.dtype = shape.dtype;
  call.plan = plan;
  call.stream = static_cast<CUstream_st*>(stream);
  const struct {
    Tensor tensor;
    void* at;
  } tensors[]{{Tensor::Q, q}, {Tensor::K, k}, {Tensor::V, v}, {Tensor::O, o}, {Tensor::LSE, lse}};
  for (const auto& [tensor, at] : tensors) call.args.tensors[static_cast<std::size_t>(tensor)] = at;
  for (const kernels::Stage& stage : pipeline.stages(shape, plan)) stage.launch(call);
  return 0;
} catch (const std::exception&) {
  return 2;
}
}
