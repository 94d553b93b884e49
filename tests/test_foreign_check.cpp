// Outputs that were computed elsewhere, such as a GPU kernel's: what check_foreign lets pass, and what it does not.
#include "numerics_cases.hpp"

using namespace hbmscope;
using namespace hbmscope::testing;

namespace {

/// Judges flash_v2's own result on long unmasked rows, after `change`.
template <class Change>
ForeignExactness judged(Dtype dtype, Change&& change) {
  AttentionShape shape;
  shape.dtype = dtype;
  shape.seqlen_q = shape.seqlen_kv = 4096;
  shape.head_dim = shape.head_dim_v = 64;
  const RowSample sample = sample_rows(shape, 16, 1, 3);
  const TilePlan plan = tiles(128, 128);
  AttentionResult result = run_cpu("flash_v2", shape, plan, sample, 3);
  change(result);
  const NamedPlan mirrored{"flash_v2", plan};
  return check_foreign(shape, std::span(&mirrored, 1), std::span(&result, 1), sample, RandomInputs(3, dtype)).at(0);
}

constexpr Dtype kDtypesOfKernels[]{Dtype::fp32, Dtype::fp16, Dtype::bf16, Dtype::fp8};

}  // namespace

TEST_CASE("an algorithm's own result passes, and an O of zeros, of another scale or with a NaN does not") {
  for (const Dtype dtype : kDtypesOfKernels) {
    CAPTURE(info(dtype).name);
    CHECK(judged(dtype, [](AttentionResult&) {}).exactness.within_tolerance);
    CHECK_FALSE(
        judged(dtype, [](AttentionResult& r) { std::fill(r.o.begin(), r.o.end(), 0.0F); }).exactness.within_tolerance);
    CHECK_FALSE(judged(dtype, [](AttentionResult& r) {
                  for (float& o : r.o) o *= 64;
                }).exactness.within_tolerance);
    CHECK_FALSE(judged(dtype, [](AttentionResult& r) { r.o.front() = std::nanf(""); }).exactness.within_tolerance);
  }
}

TEST_CASE("LSE may be off by what its additions lose, which in fp8 is more") {
  const auto off_by = [](Dtype dtype, float error) {
    return judged(dtype, [&](AttentionResult& r) { r.lse.front() += error; }).lse_within_tolerance;
  };
  for (const Dtype dtype : kDtypesOfKernels) {
    CAPTURE(info(dtype).name);
    CHECK(off_by(dtype, 0));
    CHECK(off_by(dtype, 2e-3F) == (dtype == Dtype::fp8));
    CHECK_FALSE(off_by(dtype, 0.02F));
  }
}
