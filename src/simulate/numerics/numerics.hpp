#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/attention_shape.hpp"
#include "model/tile_plan.hpp"
#include "simulate/numerics/inputs.hpp"

/// Attention executed for real on the CPU, step by step as each algorithm does it, and compared with fp64.
namespace hbmscope {

/// The query rows to compute.
struct RowSample {
  std::vector<std::int64_t> batch_heads;  ///< batch * num_heads + head, ascending
  std::vector<std::int64_t> rows;         ///< query rows, the same for each of those heads, ascending
  bool complete;                          ///< every row of every head
};

/// At most max_rows query rows in all, over at most max_heads (batch, head) pairs: one at random from each of as many
/// equal parts of the heads and of the rows, the first and the last row always among them; everything where that is
/// within the limits. Long sequences get fewer: what one check works through is limited to 2^28 elements of K and V and
/// 2^34 multiply-adds an algorithm. Where K and V of a single head are beyond that, the sample is empty.
RowSample sample_rows(const AttentionShape& shape, std::int64_t max_rows, std::int64_t max_heads, std::uint64_t seed);

/// How the CPU computes; no choice changes a result beyond rounding, and the number of threads changes none at all.
struct CpuOptions {
  int threads = 0;           ///< 0: all of the machine's, at most 64
  std::string_view kernels;  ///< "portable", "avx2", "avx512"; empty: the fastest that the processor runs
};

/// O is [sampled heads, sampled rows, head_dim_v], LSE (natural logarithm) [sampled heads, sampled rows].
struct AttentionResult {
  std::vector<float> o;
  std::vector<float> lse;
  std::int64_t nonfinite_scores = 0;   ///< infinities and NaN among visible scores, as the algorithm stores them
  std::int64_t nonfinite_outputs = 0;  ///< the same among the elements of O
};
struct ReferenceResult {
  std::vector<double> o;
  std::vector<double> lse;
  double max_abs_score = 0;  ///< largest scaled score that any row saw
  std::int64_t fully_masked_rows = 0;
};

/// Runs `naive`, `flash_v1`, `flash_v2` or `split_kv`; other names are an Error (usage). Inputs and O are of the
/// shape's dtype, arithmetic is fp32.
AttentionResult run_cpu(std::string_view algorithm, const AttentionShape& shape, const TilePlan& plan,
                        const RowSample& sample, const InputSource& inputs, const CpuOptions& options = {});

/// The same on random inputs.
AttentionResult run_cpu(std::string_view algorithm, const AttentionShape& shape, const TilePlan& plan,
                        const RowSample& sample, std::uint64_t seed);

/// Softmax attention on the same inputs in fp64 throughout: whole rows, no tiles, nothing rounded.
ReferenceResult reference_fp64(const AttentionShape& shape, const RowSample& sample, const InputSource& inputs,
                               const CpuOptions& options = {});

struct NamedPlan {
  std::string_view algorithm;
  TilePlan plan;
};

/// Elements of O whose error lies in [2^log2, 2^(log2 + 1)).
struct ErrorBin {
  int log2;
  std::int64_t elements;
};
struct ErrorHistogram {
  std::int64_t exact = 0;      ///< elements without an error
  std::vector<ErrorBin> bins;  ///< ascending; those that hold elements
};

/// How far an algorithm's O is from fp64. An error is infinity where the result or the reference holds NaN or infinity.
struct Exactness {
  std::int64_t rows_checked;
  bool complete;  ///< every row of the shape
  double max_abs_error;
  double rmse;
  double max_abs_reference;  ///< max |O|
  double tolerance;          ///< see check_exactness
  bool within_tolerance;     ///< false whenever an error is not finite
  bool bitwise_equal_to_naive;
  std::int64_t nonfinite_scores;
  std::int64_t nonfinite_outputs;
  double naive_max_abs_error;  ///< of the naive pipeline in the same dtype
  std::int64_t fully_masked_rows;
  ErrorHistogram errors;  ///< of every element that was compared; empty where an error is not finite
};

/// Runs the named algorithms on the sample and compares each with the fp64 reference; results in the order of
/// `algorithms`. Tolerance, the rule of FlashAttention's own tests: twice the error of the naive pipeline in the same
/// dtype, plus 1 ulp of that dtype at max |O|. The naive pipeline (with its own plan where it is listed) has to stay
/// below 8 (1 + max |score|) (u + 2^-24 sqrt(seqlen_kv + head_dim)) max |O|, u = half an ulp of 1: rounding S changes
/// each probability by a relative u |score|, rounding P and O by u, and fp32 sums add the last term. The others have
/// that tolerance too where naive's own error is not finite.
std::vector<Exactness> check_exactness(const AttentionShape& shape, std::span<const NamedPlan> algorithms,
                                       const RowSample& sample, const InputSource& inputs,
                                       const CpuOptions& options = {});
std::vector<Exactness> check_exactness(const AttentionShape& shape, std::span<const NamedPlan> algorithms,
                                       const RowSample& sample, std::uint64_t seed);

/// The same for results that were computed elsewhere, on these inputs and rows. `mirrored` names the CPU engine and
/// plan that do what each of them does: an algorithm that is less exact by design (flash_v1 rounds O at every visit) is
/// allowed twice its own CPU error, if that is more than the rule allows. In fp8 it is allowed that and one ulp,
/// however far naive is off: naive's probabilities of long rows are below fp8's numbers.
struct ForeignExactness {
  Exactness exactness;
  double mirrored_max_abs_error;  ///< of the CPU engine
  double max_lse_error;           ///< of finite LSE; infinite where one side is finite and the other is not
  /// Within 1e-4 (1 + |LSE|); true where the result has no LSE. In fp8 scores may be off by 2^-10 (1 + max |score|)
  /// more: Hopper's tensor cores keep about 14 bits of a sum of fp8 products (DeepSeek-V3, arXiv 2412.19437,
  /// section 3.3.2).
  bool lse_within_tolerance;
};
std::vector<ForeignExactness> check_foreign(const AttentionShape& shape, std::span<const NamedPlan> mirrored,
                                            std::span<const AttentionResult> results, const RowSample& sample,
                                            const InputSource& inputs, const CpuOptions& options = {});

}  // namespace hbmscope
