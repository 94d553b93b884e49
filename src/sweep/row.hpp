#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/run.hpp"
#include "sweep/axis.hpp"

/// A row of a sweep: one line, a part of what `run --json` gives, and the member `sweep` that says which point it is.
namespace hbmscope {

/// Writes the rows of one sweep. They hold no time of day and nothing of the machine but the GPU that was measured, so
/// that a sweep gives the same bytes however often it is stopped and wherever its parts are computed.
class RowWriter {
 public:
  /// `device`: the name of the GPU that kernels run on; empty without one. `grid` must outlive this.
  RowWriter(const Grid& grid, std::string sweep_key, const std::string& device);

  /// The row up to what came out of it: index, keys and the values of the axes.
  void append_head(std::string& to, std::int64_t index, std::string_view key) const;
  /// The rest of a row that succeeded.
  void append_result(std::string& to, const RunResult& result) const;
  /// The same with the whole result that `run` gives; `argv` is the command line for this point alone.
  void append_whole_result(std::string& to, const RunResult& result, const std::vector<std::string>& argv) const;
  /// The rest of a row that failed: no shape, no algorithm, and the reason. `gpu` is empty where it was not known.
  void append_failure(std::string& to, std::string_view reason, std::string_view gpu) const;

 private:
  void append_meta(std::string& to) const;

  const Grid* grid_;
  std::string sweep_key_, device_;
};

/// What a row says of itself.
struct RowHead {
  std::int64_t index = -1;
  std::int64_t points = -1;
  std::string sweep_key, key, status;
  std::string version, git, device, gpu;
  bool gpu_is_axis = false;
};

/// Reads a row, without the end of its line. Throws an Error (kind data) that begins with `place`, such as
/// "rows.jsonl: line 7", for what is no row: no JSON, another major schema version, a member that is missing.
RowHead read_row(std::string_view line, const std::string& place);

}  // namespace hbmscope
