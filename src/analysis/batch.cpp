#include "analysis/batch.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "model/algorithm.hpp"

namespace hbmscope {
namespace {

const Algorithm& find_algorithm(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Algorithm& a : algorithms()) {
    if (a.name == name) return a;
    names.push_back(a.name);
  }
  throw Error(ErrorKind::data, "/algorithm: does not know " + in_quotes(name), did_you_mean(name, names));
}

void require_block(const Algorithm& a, std::int64_t block, PlanKey key, const char* name) {
  if (block > 0 || std::find(a.plan_keys.begin(), a.plan_keys.end(), key) == a.plan_keys.end()) return;
  throw Error(ErrorKind::data,
              std::string("/plan/") + name + ": is missing, and " + std::string(a.name) + " works in tiles",
              R"(give both sides of the tile, such as {"block_q": 128, "block_kv": 128})");
}

/// A closed form sums over query tiles, so one absurd line could stop the lines after it for hours.
void check_work(const AttentionShape& s, const TilePlan& plan) {
  if (plan.block_q == 0) return;
  const Count rows = Count(s.seqlen_q) * Count(s.group_size());  // as many as packed heads can stack
  const Count tiles(rows.value() / plan.block_q + 1);
  const Count sums = Count(s.kv_lengths.empty() ? 1 : s.batch) * tiles;
  if (sums.value() <= kMaxBatchTiles) return;
  throw Error(ErrorKind::data,
              "/plan/block_q: leaves up to " + std::to_string(sums.value()) + " query tiles to add up, more than " +
                  std::to_string(kMaxBatchTiles),
              "take a larger block_q or a shorter seqlen_q");
}

}  // namespace

BatchFigures batch_figures(const AttentionShape& shape, std::string_view algorithm_name, const TilePlan& plan) {
  const Algorithm& a = find_algorithm(algorithm_name);
  require_block(a, plan.block_q, PlanKey::block_q, "block_q");
  require_block(a, plan.block_kv, PlanKey::block_kv, "block_kv");
  check_work(shape, plan);
  return {total(a.closed_form(shape, plan)), live_pairs(shape), compulsory_bytes(shape, a.pass)};
}

}  // namespace hbmscope
