#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/known.hpp"
#include "device/device.hpp"
#include "measure/measure.hpp"
#include "model/algorithm.hpp"
#include "model/amdahl.hpp"
#include "model/gpu_spec.hpp"
#include "model/memory.hpp"
#include "model/paper.hpp"
#include "model/plan_choice.hpp"
#include "model/roofline.hpp"
#include "simulate/l2_model.hpp"
#include "simulate/numerics/numerics.hpp"

/// One shape in, everything known about it out. No text is made here, and nothing is printed.
namespace hbmscope {

/// How far a run goes. Each engine includes those before it; automatic is all that this machine can do.
enum class Engine : std::uint8_t {
  model,  ///< closed forms
  sim,    ///< and the L2 simulation
  cpu,    ///< and the numerics on the CPU
  gpu,    ///< and the kernels on a GPU
  automatic,
};

constexpr std::string_view name(Engine engine) {
  constexpr std::array<std::string_view, 5> names{"model", "sim", "cpu", "gpu", "auto"};
  return names[static_cast<std::size_t>(engine)];
}

struct AmdahlInput {
  std::optional<double> share;       ///< attention's share of the step, 0 to 1
  std::optional<double> speedup;     ///< of attention
  std::optional<double> time_saved;  ///< the part of attention's time that goes away, 0 to below 1
};

struct RunRequest {
  AttentionShape shape;
  std::string pass = "forward";           ///< forward, backward, both or decode
  std::vector<std::string> algorithms;    ///< empty: the pass's own
  TilePlan plan;                          ///< what the user fixed; zeros and nothings are chosen
  bool order_given = false;               ///< plan.order was fixed too
  bool stages_given = false;              ///< and plan.stages
  std::optional<std::int64_t> kv_splits;  ///< of split_kv; by default as many as fill the GPU
  GpuSpec gpu;
  bool gpu_assumed = false;   ///< nobody named one
  std::optional<Bytes> sram;  ///< M; by default the GPU's SMEM per CTA
  std::optional<Bytes> l2;    ///< effective capacity; 0 is none; by default the GPU's
  bool l2_warm = false;
  Engine engine = Engine::automatic;
  AmdahlInput amdahl;
  std::uint64_t seed = 1;
  bool portable = false;       ///< CPU sums in one order whatever the processor: the same digits on every machine
  int device = 0;              ///< which CUDA device
  std::optional<int> repeats;  ///< timed runs on a GPU; 0: none; by default as many as a third of a second holds
  bool kernel_counters = true, hw_counters = true;
  std::string flash;              ///< what "flash" among the algorithms was taken for; empty: nobody asked
  bool rungs = false;             ///< beside flash_v3, the kernels that lead up to it
  bool require_counters = false;  ///< an Error (kind device) where the hardware's counters tell nothing
};

/// Bytes across one boundary as one witness has them.
struct TrafficEntry {
  Boundary boundary;
  Provenance provenance;
  TilePlan plan;
  Known<Traffic> traffic;
  std::string_view formula;                  ///< of a plain shape under this kind of plan; empty where there is none
  bool formula_exact = false;                ///< the formula gives these very bytes for each of the heads
  std::vector<L2Estimate::PaceTotal> paces;  ///< l2_hbm only
  std::optional<double> hit_rate;            ///< l2_hbm only: read bytes that L2 served
};

struct StageResult {
  std::string_view name;
  std::vector<TrafficEntry> traffic;  ///< sm_l2 closed form, then l2_hbm
  std::optional<FlopCount> flops;     ///< of the matmuls of this stage; nothing for a stage without
  Known<Seconds> predicted;           ///< the larger of the byte and the FLOP term, and one launch
  Known<StageMeasurement> measured;
  /// Products executed, padding too, over what the data sheet's dense rate does in the measured time.
  Known<double> tensor_pipe_share;
};

/// What makes up most of an algorithm's predicted time.
enum class TimeLimit : std::uint8_t {
  hbm,       ///< bytes through HBM
  compute,   ///< matmul FLOPs
  padding,   ///< matmul FLOPs, and only because whole tiles execute more of them than there are useful ones
  launches,  ///< more than half of the time is the launches' own
};

struct AlgorithmResult {
  const Algorithm* algorithm;
  TilePlan plan;
  std::vector<TrafficEntry> traffic;
  std::vector<StageResult> stages;
  FlopCount flops;
  MemoryLedger memory;
  SmemTally smem;
  Known<Roofline> roofline;  ///< at l2_hbm
  Known<Seconds> predicted;
  Seconds launches{};              ///< the launches' part of it
  std::optional<TimeLimit> limit;  ///< nothing without a predicted time
  Known<Exactness> exactness;
  std::int64_t resident_ctas = 0;     ///< of the stage that reads K and V
  std::optional<Bytes> kv_in_flight;  ///< K and V of the heads whose CTAs are resident at one time
  Known<double> sm_clock_spread;      ///< fastest over slowest SM of Pace::drifting, less 1
  Known<PipelineMeasurement> measured;
  Known<FlopPerSecond> achieved;  ///< matmul FLOPs over the measured time
  [[nodiscard]] const TrafficEntry* find(Boundary boundary, Provenance provenance) const;
  /// The entry that stands for a boundary in tables and ratios: what the kernel's own tiles move.
  [[nodiscard]] const TrafficEntry* at(Boundary boundary) const;
};

struct Comparison {
  std::string_view of, to;
  Boundary boundary;
  double traffic_ratio;
  std::optional<double> speedup_predicted, speedup_measured;
};

struct RunResult {
  RunRequest request;
  Count live_pairs;
  Bytes compulsory;
  Bytes sram;
  Bytes l2_effective;  ///< 0: none
  Provenance l2_provenance;
  DeviceStatus device;
  Known<DeviceMeasurement> measured;  ///< also of pipelines that nobody asked for by name, as peers
  Known<PaperClaims> paper;
  Known<MemoryFit> memory_fit;
  std::vector<AlgorithmResult> algorithms;
  std::vector<Comparison> comparisons;
  Known<Amdahl> amdahl;
  std::string amdahl_speedup_from;    ///< "given", "time saved" or the names of two algorithms
  std::vector<std::string> warnings;  ///< what a reader must know to read the numbers right
  std::vector<std::string> notes;     ///< what the request left open and what was taken for it
  [[nodiscard]] const AlgorithmResult* find(std::string_view algorithm) const;
};

/// Told how far a run is; either may be empty.
using Fraction = std::function<void(double)>;
struct Progress {
  Fraction fraction;                              ///< of the simulation, 0 to 1, from any thread
  std::function<void(const std::string&)> doing;  ///< what is being measured
};

/// Throws an Error for a request that cannot be met; a part that cannot be had is a Known without a value.
RunResult run(const RunRequest& request, const Progress& progress = {});

/// A GPU pipeline and its kernels, as profilers show their ranges.
struct ProfiledPipeline {
  std::string_view name;
  std::vector<std::string_view> stages;
};
/// Runs the kernels of each algorithm asked for once, for a profiler. Throws an Error (kind device) without a GPU,
/// (kind usage) for an algorithm or a shape that no kernel takes.
std::vector<ProfiledPipeline> run_for_profiler(const RunRequest& request);

/// The algorithms that a pass runs when none are named.
std::vector<std::string> default_algorithms(std::string_view pass);

}  // namespace hbmscope
