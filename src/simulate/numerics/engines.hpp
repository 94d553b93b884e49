#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "model/attention_shape.hpp"
#include "model/tile_plan.hpp"
#include "simulate/numerics/steps.hpp"

namespace hbmscope::numerics {

/// All that one query tile's attention needs.
struct Problem {
  const AttentionShape& shape;
  const TilePlan& plan;
  const Kernels& kernels;
  const KvHead& kv;
  const QueryTile& q;
  float scale;  ///< 1 / sqrt(head_dim)
};

inline constexpr std::int64_t kDefaultBlock = 128;  ///< rows of a tile where the plan has none
constexpr std::int64_t block_q(const TilePlan& plan) {
  return plan.block_q > 0 ? plan.block_q : kDefaultBlock;
}
constexpr std::int64_t block_kv(const TilePlan& plan) {
  return plan.block_kv > 0 ? plan.block_kv : kDefaultBlock;
}

void naive(const Problem& problem, TileOutput& out);
void flash_v1(const Problem& problem, TileOutput& out);
void flash_v2(const Problem& problem, TileOutput& out);
void split_kv(const Problem& problem, TileOutput& out);

/// The loop of flash_v2 over the KV tiles that cover `keys`: O is left unnormalised. Returns how many visible scores
/// were not finite.
std::int64_t online_softmax(const Problem& problem, KeyRange keys, SoftmaxState& state);

/// O <- O / l, and the LSE m + ln l. A row that saw no key gets O = 0 and LSE = -inf.
float normalise_row(const Kernels& kernels, SoftmaxState& state, std::int64_t r);

struct Engine {
  std::string_view name;
  void (*run)(const Problem&, TileOutput&);
};
/// flash_v3 rounds where flash_v2 does: its own is when things happen, not what.
inline constexpr std::array<Engine, 5> kEngines{
    {{"naive", naive}, {"flash_v1", flash_v1}, {"flash_v2", flash_v2}, {"flash_v3", flash_v2}, {"split_kv", split_kv}}};

/// Throws an Error (usage) that lists the names there are.
const Engine& find_engine(std::string_view name);

}  // namespace hbmscope::numerics
