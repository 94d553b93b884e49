#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_options.hpp"
#include "sweep/axis.hpp"
#include "sweep/in_order.hpp"
#include "sweep/row.hpp"

namespace hbmscope {

/// The options of `run` as a sweep takes them: what may be an axis as the texts that were given, the rest as it is.
struct SweepOptions {
  RunOptions settings;  ///< of the options that cannot be axes
  struct Given {
    const RunOption* option;
    AxisKind kind;
    CLI::Option* declared;
    std::vector<std::string> texts;
  };
  std::deque<Given> given;  ///< CLI11 keeps pointers into it
  std::int64_t max_points = 1'000'000;
  bool full = false;
};

void add_sweep_options(CLI::App& command, SweepOptions& options);

/// The points of a sweep: which there are, and what comes out at each.
class SweepPoints {
 public:
  /// Checks all that can be wrong before a point is computed. Throws an Error (kind usage) for a value that no point
  /// could take, and for options that nothing reads.
  SweepPoints(const CLI::App& command, const SweepOptions& options);
  SweepPoints(const SweepPoints&) = delete;
  SweepPoints& operator=(const SweepPoints&) = delete;

  [[nodiscard]] const Grid& grid() const { return grid_; }
  [[nodiscard]] const std::string& key() const { return key_; }             ///< of the sweep
  [[nodiscard]] const std::string& device() const { return device_.name; }  ///< whose kernels run; empty: none's
  [[nodiscard]] Engine engine() const { return engine_; }
  [[nodiscard]] std::vector<std::string> gpu_files() const;  ///< that were read
  /// The row of a point, up to its results.
  [[nodiscard]] std::string head(std::int64_t index) const;
  /// Computes a point and appends its row; a point that cannot be computed is a row with its reason.
  void compute(std::int64_t index, Rows& to) const;
  /// What `hbmscope` would be called with for this point alone.
  [[nodiscard]] std::vector<std::string> command_line(std::int64_t index) const;

 private:
  struct Gpu {
    GpuSpec spec;
    std::string fingerprint;
    bool assumed;
  };

  void take_values(const CLI::App& command, const SweepOptions& options);
  void find_gpus();
  void check_values(const SweepOptions& options) const;
  void check_effects(const CLI::App& command, RunRequest request) const;
  [[nodiscard]] const Gpu& gpu_of(const RunOptions& options) const { return gpus_.at(options.gpu); }
  [[nodiscard]] RunOptions options_at(std::int64_t index) const;
  [[nodiscard]] std::string text_for_key(const RunOption& option, const std::string& value) const;
  [[nodiscard]] std::string key_of(const RunOptions& options) const;
  [[nodiscard]] std::string key_of_sweep() const;

  RunOptions base_;
  bool full_;
  Grid grid_;
  std::vector<const RunOption*> axes_;  ///< beside grid_.axes()
  std::map<std::string, Gpu> gpus_;     ///< by the name that was given; "" is the default
  Engine engine_ = Engine::model;
  DeviceStatus device_;
  std::string key_;
  std::optional<RowWriter> writer_;
};

}  // namespace hbmscope
