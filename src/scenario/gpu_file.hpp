#pragma once
#include <string_view>
#include <vector>

#include "model/gpu_spec.hpp"
#include "scenario/fields.hpp"

namespace hbmscope {

/// A GPU from JSON. Its keys carry their units; each value is `{"value": 80, "source": "datasheet"}`, with `source` a
/// key of the file's `sources` table and optionally a `note`, or a bare number, whose source is then the file itself.
/// Rates are dense, in FLOP/s. Left out, `l2_effective_bytes` is `l2_bytes` and `launch_overhead_s` is
/// kAssumedLaunchOverhead, both marked as assumed; left out, `measured_roofs` and `sm_clock_hz` are none. In
/// `GpuSpec::sources`, the key of a rate is "peak_flop_per_s.fp16" and so on. Throws an Error (kind data) that names
/// the key for what is missing, unknown or implausible.
GpuSpec parse_gpu(std::string_view text, std::string_view source_name);

/// The clocks of SMs in Hz, as `gpu probe` writes them: none where the member is absent.
std::vector<double> read_sm_clocks(const Fields& fields, const char* key);

/// Typical time between two kernels launched back to back; nobody measured it here.
inline constexpr Seconds kAssumedLaunchOverhead{4e-6};

/// Every embedded GPU, in the order of embedded_gpus().
const std::vector<GpuSpec>& embedded_gpus_parsed();
/// The embedded GPU that has a driver's name for a device among its aliases; null where none has.
const GpuSpec* gpu_of_device(std::string_view device_name);

/// The embedded GPU of that name or alias; case, '-', '_' and ' ' do not matter. Otherwise an Error (kind usage) with
/// the nearest names.
const GpuSpec& embedded_gpu(std::string_view name);

/// An embedded GPU by its name, or a GPU file by its path, which ends in ".json". An unknown name is an Error of kind
/// usage, a file that cannot be read one of kind data.
GpuSpec find_gpu(std::string_view name_or_path);

}  // namespace hbmscope
