#include "analysis/run_parts.hpp"

namespace hbmscope {
namespace {

constexpr std::int64_t kSampledRows = 256, kSampledHeads = 4;

}  // namespace

void check_numerics(RunResult& result) {
  const RunRequest& r = result.request;
  std::vector<NamedPlan> plans;
  std::vector<AlgorithmResult*> to;
  for (AlgorithmResult& a : result.algorithms) {
    if (!wants(result, Engine::cpu)) {
      a.exactness = Known<Exactness>::missing(Status::skipped, "--engine model and sim compute no output");
    } else if (a.algorithm->pass == Pass::backward) {
      a.exactness = Known<Exactness>::missing(Status::unsupported, "the CPU computes forward passes");
    } else {
      plans.push_back({a.algorithm->name, a.plan});
      to.push_back(&a);
    }
  }
  if (plans.empty()) return;
  const RowSample sample = sample_rows(r.shape, kSampledRows, kSampledHeads, r.seed);
  if (sample.rows.empty() || sample.batch_heads.empty()) {
    for (AlgorithmResult* a : to)
      a->exactness =
          Known<Exactness>::missing(Status::skipped, "one head's K and V are beyond what the check works through");
    return;
  }
  const std::vector<Exactness> checks =
      check_exactness(r.shape, plans, sample, RandomInputs(r.seed, r.shape.dtype), {0, r.portable ? "portable" : ""});
  for (std::size_t i = 0; i < to.size(); ++i) to[i]->exactness = Known<Exactness>::of(checks[i]);
}

}  // namespace hbmscope
