#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hbmscope {

/// What the GPU's counters count over one range of work. The order is the order of need: where a chip cannot count all
/// of them in one pass, the later ones are given up first.
enum class HwQuantity : std::size_t {
  dram_read_bytes,        ///< HBM to L2
  dram_write_bytes,       ///< L2 to HBM; L2 is write-back, so these lag behind the stores that caused them
  xbar_read_bytes,        ///< what the SMs receive from L2, or from another SM's shared memory
  l2_write_sectors,       ///< what the SMs send to L2, in sectors of kL2SectorBytes
  tensor_instructions,    ///< tensor-core instructions (mma.sync, wgmma), one a warp
  gpu_time_ns,            ///< from the range's start to its end on the GPU
  sm_cycles,              ///< elapsed cycles of the SM that saw the most
  sm_cycles_least,        ///< and of the one that saw the least: SMs have not all the same clock
  executed_instructions,  ///< all instructions, one a warp
  l2_lookup_sectors,  ///< read sectors that L2 looked up. Reads of one sector by several SMs at once are merged before
                      ///< L2, differently from run to run: show it, never hold it against a closed form
};

inline constexpr std::size_t kNumHwQuantities = 10;
inline constexpr std::array<HwQuantity, kNumHwQuantities> kHwQuantities{
    HwQuantity::dram_read_bytes,  HwQuantity::dram_write_bytes,    HwQuantity::xbar_read_bytes,
    HwQuantity::l2_write_sectors, HwQuantity::tensor_instructions, HwQuantity::gpu_time_ns,
    HwQuantity::sm_cycles,        HwQuantity::sm_cycles_least,     HwQuantity::executed_instructions,
    HwQuantity::l2_lookup_sectors};
inline constexpr std::size_t kL2SectorBytes = 32;

/// One T a quantity.
template <typename T>
struct ByQuantity {
  std::array<T, kNumHwQuantities> values{};
  T& operator[](HwQuantity q) { return values[static_cast<std::size_t>(q)]; }
  const T& operator[](HwQuantity q) const { return values[static_cast<std::size_t>(q)]; }
};

/// The quantity's name as a key of a result: `dram_read_bytes`.
std::string_view hw_quantity_name(HwQuantity quantity);

/// The metrics that count `quantity`, by the names that CUPTI and ncu share, without the doubtful ones. Chips differ:
/// the first name that a chip knows is the one to use, and a chip may know none.
std::span<const std::string_view> metric_candidates(HwQuantity quantity);

/// Why the counters cannot be read, from a CUptiResult: one clause that says what to change, for a report to quote;
/// empty for a code that a user can do nothing about. `driver_params` is the text of /proc/driver/nvidia/params, empty
/// where that cannot be read.
std::string counter_refusal(int cupti_code, std::string_view driver_params);

}  // namespace hbmscope
