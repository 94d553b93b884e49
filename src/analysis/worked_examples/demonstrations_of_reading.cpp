#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "analysis/worked_examples/parts.hpp"
#include "device/device.hpp"
#include "model/amdahl.hpp"
#include "scenario/gpu_file.hpp"

// How to read a result: the whole step, which kernel ran, when fusing does not help, what to look at.
namespace hbmscope::worked {
namespace {

using V = WorkedValues;
using Reals = std::vector<double>;
constexpr double kShare = 0.3;  // attention's part of a step

void quote_the_step(V& v) {
  const Reals speedups{1.5, 2, 4, 8, 1000};
  Reals steps, timed;
  for (const double k : speedups) {
    steps.push_back(amdahl(kShare, k).end_to_end_speedup);
    timed.push_back(1 / ((1 - kShare) + kShare / k));
  }
  v.add("attention_speedup", speedups);
  v.add("step_speedup", steps);
  v.add("from_a_step_of_1_s", timed);
  v.add("limit", amdahl(kShare, std::numeric_limits<double>::infinity()).limit);
}

/// The first fused pipeline that takes the shape, or why none does.
void add_path(V& v, std::string_view name, const AttentionShape& s) {
  std::string reason = kernels::unsupported_shape(s);
  if (reason.empty() && kernels::pipelines().empty()) reason = "this build has no GPU kernels";
  for (const std::string_view wanted : {"flash_v2", "flash_v1"}) {
    for (const kernels::Pipeline* pipeline : kernels::pipelines()) {
      if (pipeline->name != wanted) continue;
      const std::string obstacle = pipeline->unsupported(s);
      if (obstacle.empty()) return v.add(name, std::string(wanted));
      if (reason.empty()) reason = obstacle;
    }
  }
  v.add_missing(name, reason);
}

void which_kernel_runs(V& v) {
  const auto shape = [](Dtype dtype, std::int64_t d) {
    AttentionShape s = head(4096, d);
    s.dtype = dtype;
    return s;
  };
  add_path(v, "fp16_d128", shape(Dtype::fp16, 128));
  add_path(v, "fp32_d128", shape(Dtype::fp32, 128));
  add_path(v, "fp8_d128", shape(Dtype::fp8, 128));
  add_path(v, "fp16_d20", shape(Dtype::fp16, 20));
  add_path(v, "fp16_d320", shape(Dtype::fp16, 320));
  v.add("d128_shape_is_taken", kernels::unsupported_shape(shape(Dtype::fp16, 128)).empty());
  v.add("d20_shape_is_taken", kernels::unsupported_shape(shape(Dtype::fp16, 20)).empty());
  v.add("d320_shape_is_taken", kernels::unsupported_shape(shape(Dtype::fp16, 320)).empty());
  // What a head dim of 20 costs where a kernel pads it to the 16 columns of a tensor core.
  const FlopCount odd = flops_of("flash_v2", head(4096, 20));
  v.add("d20_executed_over_useful", ratio(odd.executed_matmul, odd.matmul));
}
bool nothing_falls_back_silently(const V& v) {
  for (const WorkedValue& value : v.all()) {
    if (value.content.index() == 0 && value.reason.empty()) return false;
  }
  const auto missing = [&](std::string_view name) { return v[name].content.index() == 0; };
  return v.flag("d128_shape_is_taken") && !v.flag("d20_shape_is_taken") && !v.flag("d320_shape_is_taken") &&
         missing("fp16_d20") && missing("fp16_d320") && v.number("d20_executed_over_useful") > 1.5;
}

const std::vector<std::string> kNaiveAndFlash{"naive", "flash_v2"};

Seconds launches(const AlgorithmResult& a, const GpuSpec& gpu) {
  return static_cast<double>(a.stages.size()) * gpu.launch_overhead;
}

void short_sequences(V& v) {
  std::vector<std::int64_t> lengths;
  std::vector<Seconds> naive_times, flash_times;
  Reals launch_share, gain_from_launches;
  std::int64_t crossover = 0;
  for (std::int64_t N = 32; N <= 8192; N *= 4) {
    const RunResult r = simulated_run(heads(1, 12, N, 64), "H100 SXM", kNaiveAndFlash);
    const AlgorithmResult &naive = *r.find("naive"), &flash = *r.find("flash_v2");
    const double saved = naive.predicted->value - flash.predicted->value;
    const double launches_saved = launches(naive, r.request.gpu).value - launches(flash, r.request.gpu).value;
    lengths.push_back(N);
    naive_times.push_back(*naive.predicted);
    flash_times.push_back(*flash.predicted);
    launch_share.push_back(launches(flash, r.request.gpu) / *flash.predicted);
    gain_from_launches.push_back(launches_saved / saved);
    if (crossover == 0 && launches_saved < saved / 2) crossover = N;
  }
  v.add("seqlen", lengths);
  v.add("naive_us", naive_times, unit::us);
  v.add("flash_us", flash_times, unit::us);
  v.add("launch_share_of_flash", launch_share);
  v.add("gain_from_launches", gain_from_launches);
  v.add("bytes_decide_from_seqlen", crossover);
}
bool launches_decide_short_ones(const V& v) {
  const Reals share = v.list("launch_share_of_flash"), gain = v.list("gain_from_launches"), N = v.list("seqlen");
  const double crossover = v.number("bytes_decide_from_seqlen");
  return share.front() > 0.9 && share.back() < 0.1 && gain.front() > 0.9 && gain.back() < 0.1 &&
         crossover > N.front() && crossover <= N.back();
}

/// Predicted times of naive over flash_v2.
double speedup(const AttentionShape& s) {
  const RunResult r = simulated_run(s, "H100 SXM", kNaiveAndFlash);
  return *r.find("naive")->predicted / *r.find("flash_v2")->predicted;
}

void what_to_measure(V& v) {
  const AttentionShape s = heads(1, 8, 2048, 64);
  const RunResult r = simulated_run(s, "H100 SXM", kNaiveAndFlash);
  const AlgorithmResult &naive = *r.find("naive"), &flash = *r.find("flash_v2");
  const FlopPerSecond peak = *r.request.gpu.peak[static_cast<std::size_t>(s.dtype)];
  v.add("naive_hbm_MB", naive.at(Boundary::l2_hbm)->traffic->total(), unit::MB);
  v.add("flash_hbm_MB", flash.at(Boundary::l2_hbm)->traffic->total(), unit::MB);
  v.add("naive_peak_MB", naive.memory.peak_bytes, unit::MB);
  v.add("flash_peak_MB", flash.memory.peak_bytes, unit::MB);
  v.add("naive_kernels", static_cast<std::int64_t>(naive.stages.size()));
  v.add("flash_kernels", static_cast<std::int64_t>(flash.stages.size()));
  v.add("naive_launch_share", launches(naive, r.request.gpu) / *naive.predicted);
  v.add("flash_launch_share", launches(flash, r.request.gpu) / *flash.predicted);
  v.add("naive_tensor_share", (naive.flops.executed_matmul / peak) / *naive.predicted);
  v.add("flash_tensor_share", (flash.flops.executed_matmul / peak) / *flash.predicted);
  const double plain = speedup(s);
  v.add("speedup", plain);
  v.add("speedup_twice_N", speedup(heads(1, 8, 4096, 64)));
  v.add("speedup_twice_d", speedup(heads(1, 8, 2048, 128)));
  v.add("speedup_four_batches", speedup(heads(4, 8, 2048, 64)));
  v.add("speedup_causal", speedup(heads(1, 8, 2048, 64, Mask::causal())));
  v.add("step_speedup", amdahl(kShare, plain).end_to_end_speedup);
}
bool each_figure_tells(const V& v) {
  const auto falls = [&](std::string_view naive, std::string_view flash) {
    return v.number(naive) > v.number(flash) && v.number(flash) > 0;
  };
  return falls("naive_hbm_MB", "flash_hbm_MB") && falls("naive_peak_MB", "flash_peak_MB") &&
         falls("naive_kernels", "flash_kernels") && v.number("flash_tensor_share") > v.number("naive_tensor_share") &&
         v.number("naive_launch_share") < 1 && v.number("flash_launch_share") < 1 && v.number("speedup") > 1 &&
         v.number("speedup_twice_N") > v.number("speedup") && v.number("speedup_twice_d") > 1 &&
         v.number("speedup_four_batches") > v.number("speedup") && v.number("speedup_causal") > v.number("speedup") &&
         v.number("step_speedup") < v.number("speedup") && v.number("step_speedup") > 1;
}

/// Tensors that an algorithm keeps in memory and that have N^2 elements.
Count squares(const AlgorithmResult& a, const AttentionShape& s) {
  return Count(std::count_if(a.memory.entries.begin(), a.memory.entries.end(),
                             [&](const LedgerEntry& entry) { return entry.bytes >= scores(s); }));
}

void three_signs(V& v) {
  std::vector<std::int64_t> lengths{2048, 4096, 8192};
  std::vector<Bytes> naive_hbm, flash_hbm, naive_peak, flash_peak;
  std::vector<Count> naive_squares, flash_squares;
  for (const std::int64_t N : lengths) {
    const AttentionShape s = heads(1, 4, N, 128);
    const RunResult r = simulated_run(s, "H100 SXM", kNaiveAndFlash);
    const AlgorithmResult &naive = *r.find("naive"), &flash = *r.find("flash_v2");
    naive_hbm.push_back(naive.at(Boundary::l2_hbm)->traffic->total());
    flash_hbm.push_back(flash.at(Boundary::l2_hbm)->traffic->total());
    naive_squares.push_back(squares(naive, s));
    flash_squares.push_back(squares(flash, s));
    naive_peak.push_back(naive.memory.peak_bytes);
    flash_peak.push_back(flash.memory.peak_bytes);
  }
  v.add("seqlen", lengths);
  v.add("naive_hbm_MB", naive_hbm, unit::MB);
  v.add("flash_hbm_MB", flash_hbm, unit::MB);
  v.add("naive_square_tensors", naive_squares);
  v.add("flash_square_tensors", flash_squares);
  v.add("naive_peak_MB", naive_peak, unit::MB);
  v.add("flash_peak_MB", flash_peak, unit::MB);
}
bool signs_are_there(const V& v) {
  const auto all_below = [&](std::string_view a, std::string_view b) {
    const Reals x = v.list(a), y = v.list(b);
    return std::equal(x.begin(), x.end(), y.begin(), [](double p, double q) { return p < q; });
  };
  const Reals naive = v.list("naive_peak_MB"), flash = v.list("flash_peak_MB"),
              squares = v.list("flash_square_tensors"), naive_squares = v.list("naive_square_tensors");
  const bool no_square = std::all_of(squares.begin(), squares.end(), [](double n) { return n == 0; }) &&
                         std::all_of(naive_squares.begin(), naive_squares.end(), [](double n) { return n == 2; });
  const bool flatter = naive.back() / naive.front() > 12 && flash.back() / flash.front() < 4.01;
  return all_below("flash_hbm_MB", "naive_hbm_MB") && no_square && all_below("flash_peak_MB", "naive_peak_MB") &&
         flatter;
}

constexpr WorkedEntry kEntries[] = {
    {"Q-21", "Quote the gain of the whole step, not of attention alone", Provenance::formula, quote_the_step,
     [](const V& v) {
       const Reals attention = v.list("attention_speedup"), step = v.list("step_speedup"),
                   timed = v.list("from_a_step_of_1_s");
       for (std::size_t i = 0; i < step.size(); ++i) {
         if (step[i] >= attention[i] || step[i] >= v.number("limit") || std::abs(step[i] - timed[i]) > 1e-12)
           return false;
       }
       return true;
     },
     "Attention is 30 % of the step (Amdahl)."},
    {"Q-22", "An unusual dtype or head dim may run another kernel, or none", Provenance::formula, which_kernel_runs,
     nothing_falls_back_silently,
     "The first of flash_v2 and flash_v1 whose kernel takes the shape; where none does, the value is null and the "
     "reason says so, and nothing else is run in its place."},
    {"Q-23", "On short sequences launches decide, not bytes", Provenance::simulated, short_sequences,
     launches_decide_short_ones,
     "Predicted for 12 heads, d = 64, on an H100 with 4 us a launch (assumed): naive has three launches, flash one, "
     "and up to a few hundred tokens that is all the gain."},
    {"Q-24", "What to read off a profiler", Provenance::simulated, what_to_measure, each_figure_tells,
     "Predicted for 8 heads, N = 2,048, d = 64 on an H100; `run` shows the measured ones beside them on a GPU, and "
     "`profile import` those of ncu. The step has 30 % attention."},
    {"Q-25", "Three signs: fewer HBM bytes, no stored square, a flatter memory curve", Provenance::simulated,
     three_signs, signs_are_there, "4 heads, d = 128, behind the simulated L2 of an H100."},
};

}  // namespace

std::span<const WorkedEntry> demonstrations_of_reading() {
  return kEntries;
}

}  // namespace hbmscope::worked
