#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/attention_shape.hpp"
#include "model/gpu_roofs.hpp"

/// Results as they stand in files: what `run --json` wrote, whole, or a row of `sweep`, which is a part of the same
/// document. What a file leaves out is empty here, never 0.
namespace hbmscope {

/// The files that this program reads have a schema_version of this major number; the minor may be any.
inline constexpr int kResultSchemaMajor = 1;

/// A value that a file may know, or why it does not.
template <class T>
struct Recorded {
  std::optional<T> value;
  std::string reason;  ///< of its absence, as the file has it; empty where it gives none
  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
};

/// One tensor's bytes across one boundary.
struct TensorBytes {
  std::string name;  ///< "Q", "S", ...
  std::int64_t read = 0, write = 0;
};

/// Bytes across one boundary as one witness has them.
struct ResultTraffic {
  std::string boundary;    ///< "compulsory", "l2_hbm" or "sm_l2"
  std::string provenance;  ///< "closed_form", "simulated", "kernel_counter", "hw_counter", ...
  std::string plan;        ///< its JSON without blanks, keys in order: equal plans are equal texts; empty if left out
  std::string status;      ///< "ok", or there are no bytes
  std::string reason;
  std::optional<std::int64_t> read, write, total;   ///< all three or none
  std::optional<std::int64_t> least, most;          ///< of the total, where several paces were simulated
  std::optional<std::vector<TensorBytes>> tensors;  ///< nothing where nobody can tell them apart, or it was left out

  /// Counted while the kernels ran, by themselves or by the hardware.
  [[nodiscard]] bool measured() const { return provenance == "hw_counter" || provenance == "kernel_counter"; }
};

struct ResultTime {
  Recorded<double> predicted_s;
  std::optional<double> measured_median_s, measured_least_s, measured_most_s;
  std::vector<double> samples_s;
  std::string reason;  ///< why nothing was measured
};

struct ResultMemory {
  std::optional<std::int64_t> intermediate_bytes, saved_for_backward_bytes, peak_bytes;
  Recorded<std::int64_t> measured_peak_bytes;
};

/// Elements of an output by their error against fp64: from <= error < to, ascending.
struct ResultErrors {
  struct Bin {
    double from, to;
    std::int64_t elements;
  };
  std::int64_t exact = 0;  ///< elements without an error
  std::vector<Bin> bins;
};

/// How an algorithm's output differs from fp64.
struct ResultExactness {
  std::optional<double> max_abs_error, rmse, tolerance;
  std::optional<std::int64_t> rows_checked;
  std::optional<ResultErrors> errors;
  std::string reason;
};

/// A point of a roofline.
struct ResultIntensity {
  std::string level;  ///< a boundary
  std::optional<double> flop_per_byte, ridge_flop_per_byte;
  std::string reason;
};

struct ResultStage {
  std::string name;
  std::vector<ResultTraffic> traffic;
  ResultTime time;
};

struct ResultAlgorithm {
  std::string name;
  std::string plan;  ///< as ResultTraffic::plan
  std::vector<ResultTraffic> traffic;
  std::vector<ResultStage> stages;  ///< none in a row of `sweep`
  std::optional<std::int64_t> matmul_flop, executed_matmul_flop, exp;
  ResultMemory memory;
  Recorded<double> achieved_flop_per_s;
  std::optional<double> attainable_flop_per_s;
  std::vector<ResultIntensity> intensities;
  ResultTime time;
  ResultExactness exactness;

  /// The entry of a boundary and a witness that is of the algorithm's own plan (naive has a second one, which counts
  /// each operand once a kernel); else the first; null where there is none.
  [[nodiscard]] const ResultTraffic* find(std::string_view boundary, std::string_view provenance) const;
};

struct ResultGpu {
  std::string name;
  std::optional<double> hbm_bytes_per_s;
  std::vector<std::pair<std::string, double>> peak_flop_per_s;  ///< by dtype; those it has
  std::optional<std::int64_t> l2_bytes, l2_effective_bytes, smem_per_block_bytes;
  std::vector<GpuRoof> measured_roofs;  ///< none in files that were written before there were some
};

struct ResultComparison {
  std::string of, to, boundary;
  std::optional<double> traffic_ratio, speedup_predicted, speedup_measured;
};

struct ResultAmdahl {
  std::optional<double> attention_share, attention_speedup, end_to_end_speedup;
  std::string speedup_from, reason;
};

/// What a row of `sweep` has beside the result.
struct SweepPoint {
  struct Axis {
    std::string name;
    std::string text;              ///< its value as text, whatever it is
    std::optional<double> number;  ///< where it is a number
  };
  std::int64_t index = 0;
  std::string key;  ///< hash of the configuration
  std::vector<Axis> axes;
  std::string status;  ///< "ok" or "failed"
  std::string reason;
};

struct Result {
  std::string where;  ///< file and line, for an error: "rows.jsonl: line 17"
  std::string schema_version;
  std::string tool_version, git;
  std::vector<std::string> argv;  ///< the command that made it; empty if left out
  std::string device;             ///< the machine's GPU by its driver's name; empty where it had none
  std::string run;                ///< its name among the runs of a scenario; empty where it is of none
  std::optional<SweepPoint> sweep;
  std::optional<AttentionShape> shape;  ///< nothing in a failed row of `sweep`
  std::string pass;
  std::optional<std::int64_t> live_pairs;
  ResultGpu gpu;
  std::optional<std::int64_t> sram_bytes;  ///< the paper's M
  std::vector<ResultAlgorithm> algorithms;
  std::vector<ResultComparison> comparisons;
  ResultAmdahl amdahl;

  [[nodiscard]] bool failed() const { return sweep && sweep->status == "failed"; }
  [[nodiscard]] const ResultAlgorithm* find(std::string_view algorithm) const;
};

}  // namespace hbmscope
