#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/metric_names.hpp"

/// What `ncu --csv` wrote, as numbers. No GPU is needed to read it.
namespace hbmscope {

/// One metric of one kernel launch, in the SI base unit: Mbyte comes as byte, us as second.
struct NcuValue {
  std::string unit;             ///< "byte", "sector", "second", "byte/second", "%", ""; an unknown one as it stands
  std::optional<double> value;  ///< none where the file has no number: `trouble` says what it has
  std::optional<std::int64_t> exact;  ///< the same where it is a whole number
  double step = 0;                    ///< what one more in the last printed digit is worth; 10000 for "2,164.28 Mbyte"
  std::int64_t line = 0;              ///< where the file has it, from 1
  std::string trouble;                ///< "has no value: n/a"
  std::string hint;                   ///< what to do about it
};

/// One launch of a kernel, with all metrics that were collected for it.
struct NcuKernel {
  std::int64_t id = 0;       ///< ncu counts launches from 0, in each process anew
  std::int64_t process = 0;  ///< 0 where the file does not say
  std::string name;
  std::optional<std::array<std::int64_t, 3>> grid, block;  ///< CTAs, and threads of a CTA
  std::string device;                                      ///< number of the GPU among those of the process
  std::string compute_capability;                          ///< "9.0"
  std::int64_t line = 0;                                   ///< where the file has it first
  std::map<std::string, NcuValue, std::less<>> metrics;
};

enum class NcuLayout : std::uint8_t {
  rows,     ///< one row a metric: "Metric Name", "Metric Unit", "Metric Value"
  columns,  ///< one row a launch and one column a metric, units under the header: --page raw
};

struct NcuFile {
  NcuLayout layout = NcuLayout::rows;
  std::vector<NcuKernel> kernels;  ///< at least one, in the order of the file, which is that of the launches
};

/// Reads either layout; columns are found by their names. Lines that begin with "==" are ncu's own messages and are
/// passed over, as is what the profiled program printed before the table. A metric without a number is kept with its
/// trouble: only who needs it has to complain. Throws an Error (kind data) that names the line for a text that is no
/// table of ncu, or not a whole one.
NcuFile parse_ncu_csv(std::string_view text, std::string_view source_name);

/// A quantity of one launch, in bytes, seconds or plain counts, and the metrics that gave it.
struct NcuReading {
  std::string metric;  ///< its name, or several with " + " between them
  double value = 0;
  std::int64_t count = 0;  ///< the same as a whole number; of time it is 0
  double step = 0;         ///< as of NcuValue, in the unit of `value`
};

/// By the names of metric_candidates(); sectors come as bytes. Nothing if the file has none of them. Throws an Error
/// (kind data) that names kernel, metric and line for a metric that is there without a number, negative, in another
/// unit, or not a whole number where something is counted.
std::optional<NcuReading> read_quantity(const NcuKernel& kernel, HwQuantity quantity, std::string_view source_name);

/// A number with its unit, as ncu prints both: "1,234,567" and "Kbyte". Throws nothing: see NcuValue::trouble.
NcuValue parse_ncu_value(std::string_view number, std::string_view unit);

}  // namespace hbmscope
