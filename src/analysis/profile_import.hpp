#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run.hpp"
#include "device/ncu_csv.hpp"

/// Counters that somebody else's profiler read, beside what the model predicts for the same shape. No text is made here
/// but sentences of warning.
namespace hbmscope {

struct ProfileRequest {
  std::string source;  ///< the file's name, or "standard input"
  NcuFile file;
  std::string kernel;  ///< a POSIX extended regular expression that a kernel's name must contain; empty: all
  std::optional<RunRequest> beside;  ///< one algorithm and its shape; none: nothing is predicted
};

/// One direction of traffic as it was counted, and the metric it comes from.
struct CountedBytes {
  Known<Bytes> bytes;
  std::string metric;
  double step = 0;  ///< bytes that one more in the last printed digit is worth; above 1 the file holds a rounded number
};

/// Both directions across one boundary.
struct CountedTraffic {
  CountedBytes read, write;
  [[nodiscard]] Known<Bytes> total() const;
};

/// What the counters say of one launch.
struct CountedLaunch {
  NcuKernel kernel;
  CountedTraffic hbm;      ///< l2_hbm
  CountedTraffic sm;       ///< sm_l2: what the SMs receive, and what they send
  CountedBytes l2_lookup;  ///< a quantity of its own that stands beside no prediction
  Known<Seconds> time;
  Known<Count> tensor_instructions;
  std::string tensor_metric;
  std::string_view stage;  ///< of the algorithm beside it; empty: none
};

/// Counted bytes of one boundary beside predicted ones.
struct ComparisonRow {
  Boundary counted;                                            ///< l2_hbm or sm_l2
  Boundary predicted;                                          ///< compulsory, l2_hbm or sm_l2
  Provenance provenance;                                       ///< of the prediction
  Known<ReadWrite> bytes;                                      ///< predicted
  std::optional<Bytes> least_total, most_total;                ///< l2_hbm: by how CTAs keep pace
  std::optional<double> read_ratio, write_ratio, total_ratio;  ///< counted / predicted; none where either is missing
};

/// Why counted and predicted bytes differ, as far as the counters tell.
enum class DifferenceKind : std::uint8_t {
  l2_absorbed,            ///< SMs received (or sent) what did not pass HBM
  tile_reread,            ///< HBM read beyond each byte once: tiles came back
  inputs_in_l2,           ///< HBM read less than each byte once: an earlier kernel left inputs in L2
  write_back_lag,         ///< stored, but still dirty in L2 when the kernel ended
  earlier_dirty_lines,    ///< written back here, but stored by somebody else before
  spilled_lines,          ///< written back beyond the output where registers spilled, or somebody else's as above
  spills,                 ///< SMs stored more than the output: registers spilled to local memory, or a workspace
  statistics_not_stored,  ///< exactly the softmax statistics are missing
  more_tile_loads,        ///< SMs loaded more than the closed form: smaller tiles, or spills that come back
  fewer_tile_loads,       ///< SMs loaded less: larger tiles, or tiles skipped
  fewer_stores,           ///< SMs stored less than the output, for no reason that the counters tell
  more_write_backs,       ///< HBM wrote more than L2 can have held of somebody else's
};
std::string_view name(DifferenceKind kind);

struct Difference {
  DifferenceKind kind;
  Boundary boundary;         ///< whose counter shows it
  bool write;                ///< else a read
  Bytes bytes;               ///< above 0
  Bytes of;                  ///< what it is a difference to
  Provenance of_provenance;  ///< of that; closed_form also where the counter that should stand there was not collected
};

/// One launch beside one stage of the algorithm, or all launches beside the whole of it ("all").
struct LaunchComparison {
  std::string_view stage;
  std::vector<std::size_t> launches;  ///< indices into ProfileImport::launches
  CountedTraffic hbm, sm;             ///< summed over them
  std::vector<ComparisonRow> rows;
  std::vector<Difference> differences;
};

/// Names what it can of a comparison. `tiles` are the closed form's bytes at sm_l2; `once_read` what HBM reads when
/// each byte passes once a kernel, where that is known.
std::vector<Difference> differences_of(const LaunchComparison& counted, const Traffic& tiles,
                                       std::optional<Bytes> once_read, Bytes l2_bytes);

struct ProfileImport {
  std::string source;
  NcuLayout layout;
  std::string kernel;  ///< the expression
  std::size_t launches_in_file = 0;
  std::vector<CountedLaunch> launches;  ///< selected, in the order of the file
  CountedTraffic hbm;                   ///< summed over them
  std::optional<RunResult> beside;      ///< with one algorithm
  std::vector<LaunchComparison> comparisons;
  /// Of the algorithm beside: the sum over its kernels, or the median over the launches of its one kernel.
  Known<Seconds> time = Known<Seconds>::missing(Status::skipped, "nothing stands beside the counters");
  std::vector<std::string> warnings;  ///< what a reader must know to read the numbers right
  [[nodiscard]] const AlgorithmResult* algorithm() const { return beside ? &beside->algorithms.front() : nullptr; }
};

/// Throws an Error: of kind data for a metric that is there without a usable number, of kind usage for an expression
/// that is none or matches nothing, and for launches that do not match the algorithm's kernels.
ProfileImport import_profile(ProfileRequest request, const Progress& progress = {});

}  // namespace hbmscope
