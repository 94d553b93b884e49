#include <algorithm>

#include "measure/steps.hpp"
#include "model/algorithm.hpp"

namespace hbmscope {
namespace {

constexpr std::int64_t kVerifiedRows = 256, kVerifiedHeads = 4;

/// Does the pipeline leave LSE? Its closed form says whether it writes any.
bool writes_lse(const AttentionShape& shape, const MeasureRequest::Item& item) {
  return total(algorithm(item.pipeline->algorithm).closed_form(shape, item.plan))[Tensor::LSE].write.value() > 0;
}

std::string what_is_wrong(const ForeignExactness& f, std::int64_t nonfinite) {
  const Exactness& e = f.exactness;
  if (nonfinite != 0 && e.nonfinite_scores == 0) {
    return std::to_string(nonfinite) + " elements of O are NaN or infinite: not written, or wrong";
  }
  if (!e.within_tolerance) {
    return "the error against fp64 is " + std::to_string(e.max_abs_error) + ", beyond the tolerance of " +
           std::to_string(e.tolerance);
  }
  return f.lse_within_tolerance ? "" : "LSE is off by " + std::to_string(f.max_lse_error);
}

}  // namespace

void verify(Bench& bench, const MeasureRequest& request, std::vector<PipelineMeasurement>& results) {
  const RowSample sample = sample_rows(request.shape, kVerifiedRows, kVerifiedHeads, request.seed);
  std::vector<AttentionResult> outputs;
  std::vector<NamedPlan> mirrored;
  std::vector<std::int64_t> nonfinite;
  for (std::size_t i = 0; i < request.items.size(); ++i) {
    const MeasureRequest::Item& item = request.items[i];
    bench.prepare(item);
    results[i].peak = Known<Bytes>::of(bench.memory_taken());
    Device::Contents seen[2];
    for (Device::Contents& contents : seen) {
      bench.poison(item);
      bench.launch(item);
      bench.device().synchronize();
      contents = bench.device().look(bench.tensor(Tensor::O), bench.elements(Tensor::O), request.shape.dtype);
    }
    results[i].bit_identical = Known<bool>::of(seen[0].checksum == seen[1].checksum);
    nonfinite.push_back(seen[1].nonfinite);
    outputs.push_back(bench.download(sample, writes_lse(request.shape, item)));
    mirrored.push_back({item.pipeline->algorithm, item.plan});
  }
  if (sample.rows.empty() || sample.batch_heads.empty()) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      results[i].exactness = Known<ForeignExactness>::missing(
          Status::skipped, "K and V of one head are more than a check on the CPU works through");
    }
    return;
  }
  const RandomInputs inputs(request.seed, request.shape.dtype);
  const std::vector<ForeignExactness> checks = check_foreign(request.shape, mirrored, outputs, sample, inputs);
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].exactness = Known<ForeignExactness>::of(checks[i]);
    const std::string wrong = what_is_wrong(checks[i], nonfinite[i]);
    if (wrong.empty()) continue;
    results[i].exactness.status = Status::failed;
    results[i].exactness.reason = wrong;
  }
}

}  // namespace hbmscope
