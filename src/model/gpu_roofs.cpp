#include "model/gpu_roofs.hpp"

#include <algorithm>
#include <cmath>

namespace hbmscope {

const RoofKind* find_roof_kind(std::string_view name) {
  const auto found =
      std::find_if(kRoofKinds.begin(), kRoofKinds.end(), [&](const RoofKind& k) { return k.name == name; });
  return found == kRoofKinds.end() ? nullptr : &*found;
}

GpuRoof measured_roof(const RoofKind& kind, double rate) {
  return {std::string(kind.name), std::string(kind.label), kind.resource, kind.unit, rate, true};
}

std::vector<GpuRoof> roofs_for(const DatasheetRates& datasheet, std::span<const GpuRoof> measured) {
  std::vector<GpuRoof> roofs;
  if (datasheet.hbm_bytes_per_s)
    roofs.push_back({"hbm", "HBM", RoofResource::hbm, RoofUnit::byte_per_s, *datasheet.hbm_bytes_per_s, false});
  if (datasheet.matmul_flop_per_s) {
    roofs.push_back(
        {"matmul", "matmul", RoofResource::matmul, RoofUnit::flop_per_s, *datasheet.matmul_flop_per_s, false});
  }
  const bool as_bf16 = datasheet.matmul_flop_per_s && datasheet.matmul_flop_per_s == datasheet.bf16_matmul_flop_per_s;
  for (const GpuRoof& roof : measured) {
    if (roof.resource != RoofResource::matmul || as_bf16) roofs.push_back(roof);
  }
  return roofs;
}

std::optional<double> allowed_flop_per_s(const GpuRoof& roof, const RoofDemand& demand) {
  const auto slope = [&](const std::optional<double>& amount) -> std::optional<double> {
    if (!amount || !(*amount > 0) || !(demand.flop > 0)) return std::nullopt;
    return demand.flop / *amount * roof.rate;
  };
  switch (roof.resource) {
    case RoofResource::hbm:
      return slope(demand.hbm_bytes);
    case RoofResource::l2:
      return slope(demand.l2_bytes);
    case RoofResource::exp:
      return slope(demand.exp);
    case RoofResource::matmul:
      break;
  }
  return demand.flop > 0 ? std::optional(roof.rate) : std::nullopt;
}

std::optional<LowestRoof> lowest_roof(std::span<const GpuRoof> roofs, const RoofDemand& demand) {
  if (!demand.hbm_bytes) return std::nullopt;
  std::array<const GpuRoof*, 4> by_resource{};
  for (const GpuRoof& roof : roofs) {
    const GpuRoof*& best = by_resource[static_cast<std::size_t>(roof.resource)];
    const bool better = best == nullptr || (roof.measured && !best->measured) ||
                        (roof.measured == best->measured && roof.rate > best->rate);
    if (better) best = &roof;
  }
  std::optional<LowestRoof> lowest;
  for (const GpuRoof* roof : by_resource) {
    if (roof == nullptr) continue;
    const std::optional<double> rate = allowed_flop_per_s(*roof, demand);
    if (rate && std::isfinite(*rate) && (!lowest || *rate < lowest->flop_per_s)) lowest = LowestRoof{roof, *rate};
  }
  return lowest;
}

}  // namespace hbmscope
