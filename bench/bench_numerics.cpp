#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "simulate/numerics/numerics.hpp"
#if defined(HBMSCOPE_HAVE_CBLAS)
#include <cblas.h>
#endif

namespace {

using namespace hbmscope;

constexpr std::int64_t kSeqlen = 4096;
constexpr std::int64_t kHeadDim = 128;
constexpr double kFlop = 4.0 * kSeqlen * kSeqlen * kHeadDim;

void count_flop(benchmark::State& state) {
  state.counters["FLOP/s"] =
      benchmark::Counter(kFlop, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

/// One head, all rows, fp32; Arg is the number of threads.
void attention(benchmark::State& state, const char* algorithm) {
  AttentionShape shape;
  shape.seqlen_q = shape.seqlen_kv = kSeqlen;
  shape.head_dim = shape.head_dim_v = kHeadDim;
  shape.dtype = Dtype::fp32;
  TilePlan plan;
  plan.block_q = plan.block_kv = 128;
  const RowSample sample = sample_rows(shape, kSeqlen, 1, 1);
  const RandomInputs inputs(1, shape.dtype);
  const CpuOptions options{static_cast<int>(state.range(0)), {}};
  for (auto _ : state) benchmark::DoNotOptimize(run_cpu(algorithm, shape, plan, sample, inputs, options));
  count_flop(state);
}
BENCHMARK_CAPTURE(attention, flash_v2, "flash_v2")
    ->Arg(1)
    ->Arg(0)
    ->ArgName("threads")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(attention, naive, "naive")
    ->Arg(1)
    ->Arg(0)
    ->ArgName("threads")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

#if defined(HBMSCOPE_HAVE_CBLAS)
/// The same two products, and nothing else: S = Q K^T and O = S V. Threads: OPENBLAS_NUM_THREADS.
void two_sgemm(benchmark::State& state) {
  constexpr auto kN = static_cast<blasint>(kSeqlen);
  constexpr auto kD = static_cast<blasint>(kHeadDim);
  const std::vector<float> operand(kSeqlen * kHeadDim, 0.5F);
  std::vector<float> scores(kSeqlen * kSeqlen);
  std::vector<float> output(kSeqlen * kHeadDim);
  for (auto _ : state) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, kN, kN, kD, 1.0F, operand.data(), kD, operand.data(), kD, 0.0F,
                scores.data(), kN);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kN, kD, kN, 1.0F, scores.data(), kN, operand.data(), kD,
                0.0F, output.data(), kD);
    benchmark::DoNotOptimize(output.data());
  }
  count_flop(state);
}
BENCHMARK(two_sgemm)->UseRealTime()->Unit(benchmark::kMillisecond);
#endif

/// One check as the main job does it: 256 rows of four heads, three algorithms.
void whole_check(benchmark::State& state) {
  AttentionShape shape;
  shape.num_heads = shape.num_kv_heads = 64;
  shape.seqlen_q = shape.seqlen_kv = state.range(0);
  const std::vector<NamedPlan> algorithms{{"naive", {}}, {"flash_v1", {}}, {"flash_v2", {}}};
  const RowSample sample = sample_rows(shape, 256, 4, 1);
  for (auto _ : state) benchmark::DoNotOptimize(check_exactness(shape, algorithms, sample, 1));
}
BENCHMARK(whole_check)->Arg(8192)->Arg(131072)->UseRealTime()->Unit(benchmark::kMillisecond);

void normal_numbers(benchmark::State& state) {
  const RandomInputs inputs(1, Dtype::fp32);
  std::vector<float> row(static_cast<std::size_t>(kHeadDim));
  std::int64_t i = 0;
  for (auto _ : state) {
    inputs.read_row(Tensor::K, 0, 0, i++, row);
    benchmark::DoNotOptimize(row.data());
  }
  state.SetItemsProcessed(state.iterations() * kHeadDim);
}
BENCHMARK(normal_numbers);

}  // namespace
