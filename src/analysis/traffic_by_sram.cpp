#include "analysis/traffic_by_sram.hpp"

#include <algorithm>
#include <optional>

#include "model/plan_choice.hpp"

namespace hbmscope {
namespace {

constexpr std::int64_t kLeastTile = 16;

bool uses(const Algorithm& a, PlanKey key) {
  return std::find(a.plan_keys.begin(), a.plan_keys.end(), key) != a.plan_keys.end();
}

/// The largest query tile that fits beside `kLeastTile` keys; nothing where not even the smallest does.
std::optional<TilePlan> widest_plan(const Algorithm& a, const AttentionShape& shape, Bytes sram) {
  TilePlan plan;
  plan.block_q = plan.block_kv = kLeastTile;
  const Bytes least = smem_tally(a, shape, plan).total;
  if (least > sram) return std::nullopt;
  plan.block_q += kLeastTile;
  const Bytes step = smem_tally(a, shape, plan).total - least;  // the tally grows evenly with query rows
  const std::int64_t steps = (sram - least).value() / step.value();
  const std::int64_t most = (shape.seqlen_q + kLeastTile - 1) / kLeastTile * kLeastTile;
  plan.block_q = std::min(kLeastTile * (1 + steps), most);
  return plan;
}

std::optional<TilePlan> plan_for(const Algorithm& a, const AttentionShape& shape, Bytes sram) {
  if (!uses(a, PlanKey::block_q)) return TilePlan{};
  if (!a.name.starts_with("flash_v1")) return widest_plan(a, shape, sram);
  // Blocks of Algorithm 1 are rounded up, so the smallest of memories would hold less than they take.
  const TilePlan plan = choose_plan(a, shape, {}, sram);
  return plan.block_kv > 1 ? std::optional(plan) : std::nullopt;
}

}  // namespace

std::vector<SramPoint> traffic_by_sram(const Algorithm& a, const AttentionShape& shape, std::span<const Bytes> srams) {
  std::vector<SramPoint> points;
  for (const Bytes sram : srams) {
    if (const std::optional<TilePlan> plan = plan_for(a, shape, sram))
      points.push_back({sram, total(a.closed_form(shape, *plan)).total(), *plan});
  }
  return points;
}

}  // namespace hbmscope
