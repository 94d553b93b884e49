#include "simulate/numerics/numerics.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/rounding.hpp"
#include "simulate/numerics/engines.hpp"
#include "simulate/numerics/kernel_choice.hpp"
#include "simulate/numerics/parallel.hpp"
#include "simulate/numerics/reference.hpp"

namespace hbmscope {

namespace numerics {

const Engine& find_engine(std::string_view name) {
  std::string names;
  for (const Engine& engine : kEngines) {
    if (engine.name == name) return engine;
    names.append(names.empty() ? "" : ", ").append(engine.name);
  }
  throw Error(ErrorKind::usage, "the CPU engine runs no algorithm '" + std::string(name) + "'", "it runs: " + names);
}

namespace {

AttentionResult empty_result(const AttentionShape& shape, const RowSample& sample) {
  const std::size_t rows = sample.batch_heads.size() * sample.rows.size();
  return {std::vector<float>(rows * static_cast<std::size_t>(shape.head_dim_v)), std::vector<float>(rows)};
}

/// Fills in the part of `result` that the heads of one group are.
void run_group(const Engine& engine, const AttentionShape& shape, const TilePlan& plan, const RowSample& sample,
               const HeadGroup& group, const KvHead& kv, const InputSource& inputs, const Kernels& kernels, int threads,
               AttentionResult& result) {
  const auto rows = static_cast<std::int64_t>(sample.rows.size());
  const auto heads = static_cast<std::int64_t>(group.places.size());
  constexpr std::int64_t kMostScores = std::int64_t{1} << 22;  // of one naive tile: 16 MiB
  const std::int64_t most_rows =
      engine.run == naive ? std::clamp<std::int64_t>(kMostScores / std::max<std::int64_t>(kv.keys, 1), 1, kDefaultBlock)
                          : std::min(block_q(plan), kDefaultBlock);
  const std::int64_t fair_share = (rows * heads + threads - 1) / threads;
  const std::int64_t tile_rows = std::clamp<std::int64_t>(fair_share, 1, most_rows);
  const std::int64_t tiles = (rows + tile_rows - 1) / tile_rows;
  const float scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));

  std::vector<TileOutput> outputs(static_cast<std::size_t>(tiles * heads));
  parallel_for(tiles * heads, threads, [&](std::int64_t i) {
    const std::int64_t place = group.places[static_cast<std::size_t>(i / tiles)];
    const std::int64_t first = i % tiles * tile_rows;
    const std::int64_t count = std::min(tile_rows, rows - first);
    const std::int64_t head = sample.batch_heads[static_cast<std::size_t>(place)] % shape.num_heads;
    const QueryTile q =
        load_queries(shape, inputs, group.batch, head,
                     std::span(sample.rows).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
    TileOutput& out = outputs[static_cast<std::size_t>(i)];
    out.o = result.o.data() + (place * rows + first) * shape.head_dim_v;
    out.lse = result.lse.data() + place * rows + first;
    engine.run({shape, plan, kernels, kv, q, scale}, out);
  });
  for (const TileOutput& out : outputs) {
    result.nonfinite_scores += out.nonfinite_scores;
    result.nonfinite_outputs += out.nonfinite_outputs;
  }
}

struct Difference {
  double max_abs = 0;
  double rmse = 0;
  ErrorHistogram errors = {};
};

/// Counts by powers of two. Subtracting a double from a float's leaves nothing below 2^-1074.
class ErrorCounts {
 public:
  void add(double error) {
    if (error > 0) {
      ++counts_[static_cast<std::size_t>(std::ilogb(error) - kLeast)];
    } else {
      ++exact_;
    }
  }
  [[nodiscard]] ErrorHistogram histogram() const {
    ErrorHistogram out{exact_, {}};
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] > 0) out.bins.push_back({static_cast<int>(i) + kLeast, counts_[i]});
    }
    return out;
  }

 private:
  static constexpr int kLeast = -1074, kMost = 1023;
  std::int64_t exact_ = 0;
  std::array<std::int64_t, kMost - kLeast + 1> counts_{};
};

/// Infinite when either side has a number that is not finite.
Difference difference(std::span<const float> result, std::span<const double> reference) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Difference difference;
  ErrorCounts counts;
  double squares = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double error = std::fabs(static_cast<double>(result[i]) - reference[i]);
    if (!std::isfinite(error)) return {kInfinity, kInfinity, {}};
    difference.max_abs = std::max(difference.max_abs, error);
    squares += error * error;
    counts.add(error);
  }
  difference.errors = counts.histogram();
  if (!reference.empty()) difference.rmse = std::sqrt(squares / static_cast<double>(reference.size()));
  return difference;
}

double max_magnitude(std::span<const double> values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::fabs(value));
  return most;
}

double naive_bound(const AttentionShape& shape, const ReferenceResult& reference, double max_abs_reference) {
  const double half_ulp = ulp(1.0, shape.dtype) / 2;
  const double fp32_sums = std::ldexp(std::sqrt(static_cast<double>(shape.seqlen_kv + shape.head_dim)), -24);
  return 8 * (1 + reference.max_abs_score) * (half_ulp + fp32_sums) * max_abs_reference;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<std::uint32_t, float>, std::bit_cast<std::uint32_t, float>);
}

}  // namespace
}  // namespace numerics

AttentionResult run_cpu(std::string_view algorithm, const AttentionShape& shape, const TilePlan& plan,
                        const RowSample& sample, const InputSource& inputs, const CpuOptions& options) {
  const numerics::Engine& engine = numerics::find_engine(algorithm);
  const numerics::Kernels& kernels = numerics::choose_kernels(options.kernels);
  const int threads = numerics::thread_count(options.threads);
  AttentionResult result = numerics::empty_result(shape, sample);
  for (const numerics::HeadGroup& group : numerics::group_heads(shape, sample)) {
    const numerics::KvHead kv = numerics::load_kv_head(shape, inputs, group.batch, group.kv_head, threads);
    numerics::run_group(engine, shape, plan, sample, group, kv, inputs, kernels, threads, result);
  }
  return result;
}

AttentionResult run_cpu(std::string_view algorithm, const AttentionShape& shape, const TilePlan& plan,
                        const RowSample& sample, std::uint64_t seed) {
  return run_cpu(algorithm, shape, plan, sample, RandomInputs(seed, shape.dtype));
}

namespace {

/// The reference and what the CPU engines make of the same rows; the naive pipeline is always among them.
struct CpuResults {
  std::vector<NamedPlan> engines;
  std::vector<AttentionResult> results;
  std::size_t naive;  ///< place among them
  ReferenceResult reference;
};

bool is_naive(const NamedPlan& named) {
  return named.algorithm == "naive";
}

CpuResults compute(const AttentionShape& shape, std::span<const NamedPlan> algorithms, const RowSample& sample,
                   const InputSource& inputs, const CpuOptions& options) {
  const numerics::Kernels& kernels = numerics::choose_kernels(options.kernels);
  const int threads = numerics::thread_count(options.threads);
  CpuResults cpu{{algorithms.begin(), algorithms.end()}, {}, 0, numerics::empty_reference(shape, sample)};
  if (std::ranges::none_of(cpu.engines, is_naive)) cpu.engines.push_back({"naive", {}});
  cpu.naive = static_cast<std::size_t>(std::ranges::find_if(cpu.engines, is_naive) - cpu.engines.begin());
  cpu.results.assign(cpu.engines.size(), numerics::empty_result(shape, sample));
  for (const numerics::HeadGroup& group : numerics::group_heads(shape, sample)) {
    const numerics::KvHead kv = numerics::load_kv_head(shape, inputs, group.batch, group.kv_head, threads);
    numerics::reference_group(shape, sample, group, kv, inputs, kernels, threads, cpu.reference);
    for (std::size_t i = 0; i < cpu.engines.size(); ++i) {
      const numerics::Engine& engine = numerics::find_engine(cpu.engines[i].algorithm);
      numerics::run_group(engine, shape, cpu.engines[i].plan, sample, group, kv, inputs, kernels, threads,
                          cpu.results[i]);
    }
  }
  return cpu;
}

/// Holds one result against the reference; `own_error` widens the rule where it is larger than naive's, and in fp8 it
/// is the rule: naive rounds probabilities there, most of which are 0 then, and any O would be as good as naive's.
Exactness judge(const AttentionShape& shape, const CpuResults& cpu, const RowSample& sample,
                const AttentionResult& result, bool naive, std::optional<double> own_error) {
  const double max_abs_reference = numerics::max_magnitude(cpu.reference.o);
  const double bound = numerics::naive_bound(shape, cpu.reference, max_abs_reference);
  const double naive_error = numerics::difference(cpu.results[cpu.naive].o, cpu.reference.o).max_abs;
  const bool by_own = own_error && shape.dtype == Dtype::fp8;
  const double allowed = by_own ? *own_error : std::max(naive_error, own_error.value_or(0));
  const double rule = std::isfinite(allowed) ? 2 * allowed + ulp(max_abs_reference, shape.dtype) : bound;
  const numerics::Difference error = numerics::difference(result.o, cpu.reference.o);
  const double tolerance = naive ? std::max(bound, own_error.value_or(0)) : rule;
  return {.rows_checked = static_cast<std::int64_t>(cpu.reference.lse.size()),
          .complete = sample.complete,
          .max_abs_error = error.max_abs,
          .rmse = error.rmse,
          .max_abs_reference = max_abs_reference,
          .tolerance = tolerance,
          .within_tolerance = error.max_abs <= tolerance && std::isfinite(error.max_abs),
          .bitwise_equal_to_naive = numerics::same_bits(result.o, cpu.results[cpu.naive].o),
          .nonfinite_scores = result.nonfinite_scores,
          .nonfinite_outputs = result.nonfinite_outputs,
          .naive_max_abs_error = naive_error,
          .fully_masked_rows = cpu.reference.fully_masked_rows,
          .errors = error.errors};
}

/// Largest error of LSE and whether each is within its tolerance.
std::pair<double, bool> compare_lse(std::span<const float> lse, const CpuResults& cpu, Dtype dtype) {
  const std::vector<double>& reference = cpu.reference.lse;
  const double of_scores = dtype == Dtype::fp8 ? 0x1p-10 * (1 + cpu.reference.max_abs_score) : 0;
  double most = 0;
  bool within = true;
  for (std::size_t i = 0; i < lse.size(); ++i) {
    const auto mine = static_cast<double>(lse[i]);
    if (mine == reference[i]) continue;  // -inf of a row without keys
    const double error = std::fabs(mine - reference[i]);
    most = std::isfinite(error) ? std::max(most, error) : std::numeric_limits<double>::infinity();
    within = within && error <= of_scores + 1e-4 * (1 + std::fabs(reference[i]));
  }
  return {most, within};
}

}  // namespace

std::vector<Exactness> check_exactness(const AttentionShape& shape, std::span<const NamedPlan> algorithms,
                                       const RowSample& sample, const InputSource& inputs, const CpuOptions& options) {
  const CpuResults cpu = compute(shape, algorithms, sample, inputs, options);
  std::vector<Exactness> checks;
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    checks.push_back(judge(shape, cpu, sample, cpu.results[i], is_naive(algorithms[i]), {}));
  }
  return checks;
}

std::vector<ForeignExactness> check_foreign(const AttentionShape& shape, std::span<const NamedPlan> mirrored,
                                            std::span<const AttentionResult> results, const RowSample& sample,
                                            const InputSource& inputs, const CpuOptions& options) {
  const CpuResults cpu = compute(shape, mirrored, sample, inputs, options);
  std::vector<ForeignExactness> checks;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double own = numerics::difference(cpu.results[i].o, cpu.reference.o).max_abs;
    const auto [lse_error, lse_within] = compare_lse(results[i].lse, cpu, shape.dtype);
    checks.push_back({judge(shape, cpu, sample, results[i], false, own), own, lse_error, lse_within});
  }
  return checks;
}

std::vector<Exactness> check_exactness(const AttentionShape& shape, std::span<const NamedPlan> algorithms,
                                       const RowSample& sample, std::uint64_t seed) {
  return check_exactness(shape, algorithms, sample, RandomInputs(seed, shape.dtype));
}

}  // namespace hbmscope
