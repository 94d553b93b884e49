#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The roofs of a roofline: what a GPU does at most of one thing a second. A datasheet states two, HBM and the matmul
/// rate; `gpu probe` measures more.
namespace hbmscope {

enum class RoofUnit : std::uint8_t { byte_per_s, flop_per_s, exp_per_s };
constexpr std::string_view name(RoofUnit unit) {
  constexpr std::array<std::string_view, 3> kNames{"byte_per_s", "flop_per_s", "exp_per_s"};
  return kNames[static_cast<std::size_t>(unit)];
}

/// What is used up: roofs of one resource are different figures for the same thing.
enum class RoofResource : std::uint8_t { hbm, l2, matmul, exp };
constexpr std::string_view name(RoofResource resource) {
  constexpr std::array<std::string_view, 4> kNames{"HBM", "L2", "matmul", "exp"};
  return kNames[static_cast<std::size_t>(resource)];
}

/// A roof that can be measured, by the name that `gpu probe` gives it.
struct RoofKind {
  std::string_view name;
  RoofResource resource;
  RoofUnit unit;
  std::string_view key;  ///< in a GPU file
  std::string_view label;
};
inline constexpr std::array<RoofKind, 7> kRoofKinds{
    {{"copy", RoofResource::hbm, RoofUnit::byte_per_s, "copy_bytes_per_s", "HBM copy"},
     {"read", RoofResource::hbm, RoofUnit::byte_per_s, "read_bytes_per_s", "HBM read"},
     {"write", RoofResource::hbm, RoofUnit::byte_per_s, "write_bytes_per_s", "HBM write"},
     {"l2_read", RoofResource::l2, RoofUnit::byte_per_s, "l2_read_bytes_per_s", "L2 read"},
     {"mma_sync", RoofResource::matmul, RoofUnit::flop_per_s, "mma_sync_flop_per_s", "bf16 mma.sync"},
     {"wgmma", RoofResource::matmul, RoofUnit::flop_per_s, "wgmma_flop_per_s", "bf16 wgmma"},
     {"exp2", RoofResource::exp, RoofUnit::exp_per_s, "exp2_exp_per_s", "exp2"}}};
/// Null for a name that `gpu probe` does not use.
const RoofKind* find_roof_kind(std::string_view name);

/// One roof of one GPU.
struct GpuRoof {
  std::string name;   ///< of kRoofKinds where measured; else "hbm" or "matmul"
  std::string label;  ///< "HBM", "bf16 wgmma"
  RoofResource resource;
  RoofUnit unit;
  double rate;
  bool measured;  ///< else a datasheet's
};
GpuRoof measured_roof(const RoofKind& kind, double rate);

/// What a datasheet says of a GPU and a dtype.
struct DatasheetRates {
  std::optional<double> hbm_bytes_per_s;
  std::optional<double> matmul_flop_per_s;       ///< of the dtype
  std::optional<double> bf16_matmul_flop_per_s;  ///< the measured matmul roofs are of bf16
};
/// The roofs that hold for a dtype: the datasheet's, then those measured. bf16's measured matmul roofs hold for bf16,
/// and for a dtype of the same rate by the datasheet.
std::vector<GpuRoof> roofs_for(const DatasheetRates& datasheet, std::span<const GpuRoof> measured);

/// What an algorithm asks of the resources; nothing where it is not known.
struct RoofDemand {
  double flop = 0;  ///< useful
  std::optional<double> hbm_bytes, l2_bytes, exp;
};
/// Useful FLOP/s that a roof allows if nothing else holds back. Nothing where the demand is unknown or zero.
std::optional<double> allowed_flop_per_s(const GpuRoof& roof, const RoofDemand& demand);

struct LowestRoof {
  const GpuRoof* roof;
  double flop_per_s;
};
/// The roof that an algorithm meets first. A resource counts by its highest measured roof, else by the datasheet's.
/// Nothing without roofs, without FLOP, or where the bytes through HBM are not known.
std::optional<LowestRoof> lowest_roof(std::span<const GpuRoof> roofs, const RoofDemand& demand);

}  // namespace hbmscope
