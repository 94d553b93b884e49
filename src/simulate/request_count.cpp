#include "simulate/request_count.hpp"

namespace hbmscope {
namespace {

struct RequestCounter : TileListener {
  void load(const TileId& /*tile*/, Bytes /*bytes*/) override { ++requests; }
  void store(const TileId& /*tile*/, Bytes /*bytes*/) override { ++requests; }
  std::int64_t requests = 0;
};

}  // namespace

std::int64_t count_requests(const std::vector<KernelWalk>& kernels) {
  WideInt sum = 0;
  for (const KernelWalk& kernel : kernels) {
    const bool alike = kernel.heads_per_kv > 0;
    const std::int64_t walked = alike ? kernel.tiles_per_head : kernel.num_ctas;
    RequestCounter counter;
    for (std::int64_t cta = 0; cta < walked; ++cta) {
      for (std::int64_t pass = 0; pass < kernel.passes_per_cta; ++pass) kernel.walk_pass(cta, pass, counter);
    }
    sum += static_cast<WideInt>(counter.requests) * (kernel.num_ctas / walked);
  }
  return narrow(sum).value();
}

double estimate_requests(const std::vector<KernelWalk>& kernels) {
  double sum = 0;
  for (const KernelWalk& kernel : kernels) {
    RequestCounter counter;
    for (const std::int64_t half : {0, 1, 2}) {
      const auto at = [&](std::int64_t size) { return half == 2 ? size - 1 : (size - 1) / 2 * half; };
      kernel.walk_pass(at(kernel.num_ctas), at(kernel.passes_per_cta), counter);
    }
    sum += static_cast<double>(counter.requests) / 3 * static_cast<double>(kernel.num_ctas) *
           static_cast<double>(kernel.passes_per_cta);
  }
  return sum;
}

}  // namespace hbmscope
