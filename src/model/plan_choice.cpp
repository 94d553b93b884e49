#include "model/plan_choice.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>
#include <vector>

#include "model/paper.hpp"

namespace hbmscope {
namespace {

bool uses(const Algorithm& a, PlanKey key) {
  return std::find(a.plan_keys.begin(), a.plan_keys.end(), key) != a.plan_keys.end();
}

/// Largest first. 128 x 128 is what FlashAttention-2 and cuDNN take where it fits; each next one needs less SMEM.
constexpr std::pair<std::int64_t, std::int64_t> kTiles[] = {{128, 128}, {128, 64}, {64, 64}, {64, 32}, {32, 32},
                                                            {16, 16},   {16, 8},   {8, 8},   {4, 4},   {1, 1}};

/// Query rows of a tile where a head has few of them: the fewest of these that hold them all, as a tile is computed
/// whole, padding too. 16 is the least that a tensor core multiplies.
constexpr std::int64_t kFewRows[] = {16, 32, 64};

std::int64_t largest_useful_block_q(const Algorithm& a, const AttentionShape& s, const TilePlan& plan) {
  const bool packs = uses(a, PlanKey::pack_gqa) && plan.pack_gqa.value_or(a.name == "split_kv");
  const std::int64_t rows = s.seqlen_q * (packs ? s.group_size() : 1);
  for (const std::int64_t block_q : kFewRows) {
    if (rows <= block_q) return block_q;
  }
  return std::max(kTiles[0].first, std::int64_t{192});  // the largest that any algorithm takes
}

class Tally {
 public:
  explicit Tally(std::int64_t element_bytes) : e_(element_bytes) {}
  void add(const char* tensor, std::int64_t copies, std::int64_t rows, std::int64_t width) {
    total_ += Count(copies) * (Count(rows) * (Count(width) * Bytes(e_)));
    if (!words_.empty()) words_ += " + ";
    words_ += std::string(tensor) + " " + (copies > 1 ? std::to_string(copies) + " x " : "") + std::to_string(rows) +
              " x " + std::to_string(width) + " x " + std::to_string(e_);
  }
  [[nodiscard]] SmemTally sum() const { return {total_, words_ + " = " + std::to_string(total_.value()) + " B"}; }

 private:
  std::int64_t e_;
  Bytes total_;
  std::string words_;
};

}  // namespace

SmemTally smem_tally(const Algorithm& a, const AttentionShape& s, const TilePlan& plan) {
  Tally tally(s.element_bytes());
  const bool backward = a.pass == Pass::backward;
  if (a.name.starts_with("flash_v1")) {
    const std::int64_t copies = backward ? 2 : 1;  // backward: with dQ, dO, dK and dV beside them
    tally.add(backward ? "Q, dQ" : "Q", copies, plan.block_q, s.head_dim);
    tally.add(backward ? "O, dO" : "O", copies, plan.block_q, s.head_dim_v);
    tally.add(backward ? "K, dK" : "K", copies, plan.block_kv, s.head_dim);
    tally.add(backward ? "V, dV" : "V", copies, plan.block_kv, s.head_dim_v);
  } else if (uses(a, PlanKey::block_q)) {
    tally.add("Q", 1, plan.block_q, s.head_dim);
    if (backward) tally.add("dO", 1, plan.block_q, s.head_dim_v);
    tally.add("K", plan.stages, plan.block_kv, s.head_dim);
    tally.add("V", plan.stages, plan.block_kv, s.head_dim_v);
  }
  return tally.sum();
}

namespace {

TilePlan choose_tiles(const Algorithm& a, const AttentionShape& s, const TilePlan& wanted, Bytes sram) {
  TilePlan plan = wanted;
  if (!uses(a, PlanKey::gemm_tile)) {
    plan.gemm_tile.reset();
  } else if (!plan.gemm_tile) {
    plan.gemm_tile = kDefaultGemmTile;
  }
  if (!uses(a, PlanKey::block_q)) return plan;
  const bool asked = wanted.block_q > 0 && wanted.block_kv > 0;
  if (a.name.starts_with("flash_v1")) {
    // The backward pass keeps two tensors a block more than Algorithm 1 allows for, so its blocks are those of half the
    // memory.
    const std::int64_t share = a.pass == Pass::backward ? 2 : 1;
    const auto [block_q, block_kv] =
        algorithm1_blocks(sram.value() / s.element_bytes() / share, std::max(s.head_dim, s.head_dim_v));
    if (wanted.block_q == 0) plan.block_q = block_q;
    if (wanted.block_kv == 0) plan.block_kv = block_kv;
    if (wanted.block_q == 0 && wanted.block_kv == 0) return plan;  // the paper's own choice, which rounds M / 4d up
  } else if (!asked) {
    const std::int64_t most = largest_useful_block_q(a, s, plan);
    std::vector<std::pair<std::int64_t, std::int64_t>> tiles(std::begin(kTiles), std::end(kTiles));
    if (const QueryTile first = flash_v3_tile(s, wanted); a.name == "flash_v3")
      tiles.insert(tiles.begin(), {first.block_q, first.block_kv});
    for (const auto& [block_q, block_kv] : tiles) {
      if (wanted.block_q == 0) plan.block_q = std::min(block_q, most);
      if (wanted.block_kv == 0) plan.block_kv = block_kv;
      if (smem_tally(a, s, plan).total <= sram) return plan;
    }
  }
  const SmemTally tally = smem_tally(a, s, plan);
  if (tally.total > sram) {
    throw Error(ErrorKind::usage,
                std::string(a.name) + ": a " + std::to_string(plan.block_q) + " x " + std::to_string(plan.block_kv) +
                    " tile does not fit the " + std::to_string(sram.value()) +
                    " B of SMEM a CTA may use: " + tally.words,
                "take smaller --block-q or --block-kv, fewer stages, or more --sram");
  }
  return plan;
}

}  // namespace

TilePlan choose_plan(const Algorithm& a, const AttentionShape& s, const TilePlan& wanted, Bytes sram) {
  TilePlan plan = choose_tiles(a, s, wanted, sram);
  plan.cluster = a.name == "flash_v3" ? flash_v3_cluster(s, plan) : uses(a, PlanKey::cluster) ? cluster_of(plan) : 1;
  return plan;
}

std::int64_t choose_kv_splits(const AttentionShape& s, const TilePlan& plan, std::int64_t num_sms) {
  const std::int64_t pack = plan.pack_gqa.value_or(true) ? s.group_size() : 1;
  const std::int64_t heads = s.num_heads / pack;
  const std::int64_t tiles_per_head = (s.seqlen_q * pack + plan.block_q - 1) / plan.block_q;
  const double query_tiles =
      static_cast<double>(s.batch) * static_cast<double>(heads) * static_cast<double>(tiles_per_head);
  const auto sms = static_cast<double>(num_sms);
  if (query_tiles >= 0.8 * sms) return 1;
  const std::int64_t most = std::min<std::int64_t>(128, (s.seqlen_kv + plan.block_kv - 1) / plan.block_kv);
  std::int64_t best = 1;
  double best_efficiency = 0;
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    const double waves = query_tiles * static_cast<double>(splits) / sms;
    const double efficiency = waves / std::ceil(waves);
    if (efficiency > best_efficiency + 1e-9) {
      best = splits;
      best_efficiency = efficiency;
    }
  }
  return best;
}

namespace {

/// Major and minor number of "NVIDIA Hopper, compute capability 9.0"; zeros where an architecture has none.
std::array<int, 2> compute_capability(const GpuSpec& gpu) {
  constexpr std::string_view kBefore = "compute capability ";
  const std::string& text = gpu.architecture;
  const std::size_t at = text.find(kBefore);
  std::array<int, 2> numbers{};
  if (at == std::string::npos) return numbers;
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data() + at + kBefore.size(), end, numbers[0]);
  if (error == std::errc{} && dot != end && *dot == '.') std::from_chars(dot + 1, end, numbers[1]);
  return numbers;
}

constexpr std::array<int, 2> kHopper{9, 0};

}  // namespace

std::string_view fastest_flash(const AttentionShape& s, const GpuSpec& gpu) {
  return compute_capability(gpu) == kHopper && s.dtype != Dtype::fp32 ? "flash_v3" : "flash_v2";
}

std::string_view lacking(const Algorithm& a, const TilePlan& plan, const GpuSpec& gpu) {
  const std::array<int, 2> has = compute_capability(gpu);
  const bool stated = has[0] > 0 || gpu.architecture.find("AMD") != std::string::npos;
  if (!stated) return {};  // it may be anything
  // Blackwell kept copy engine and clusters, but not wgmma.
  if (a.name == "flash_v3" && has != kHopper)
    return "Hopper, compute capability 9.0: its copy engine and wgmma instructions";
  if (cluster_of(plan) > 1 && has < kHopper) return "clusters, compute capability 9.0 or more";
  return {};
}

std::int64_t flash_v3_width(const AttentionShape& s) {
  const std::int64_t width = std::max(s.head_dim, s.head_dim_v);
  if (width <= 64 && s.dtype != Dtype::fp8) return 64;
  return width <= 128 ? 128 : 256;
}

std::int64_t flash_v3_turned_bytes(const AttentionShape& s, const TilePlan& plan) {
  if (s.dtype != Dtype::fp8) return 0;
  const std::int64_t width = flash_v3_width(s), tiles = width <= 128 ? 3 : 2;
  return tiles * ((plan.block_kv + 127) / 128) * 128 * width;
}

QueryTile flash_v3_tile(const AttentionShape& s, const TilePlan& wanted) {
  const std::int64_t width = std::max(s.head_dim, s.head_dim_v);
  if (s.dtype == Dtype::fp8) return width <= 128 ? QueryTile{192, 96} : QueryTile{128, 96};
  const bool short_causal = s.mask.window_right && s.seqlen_q <= 1024;
  if (width <= 64) return short_causal || s.seqlen_q <= 128 ? QueryTile{128, 128} : QueryTile{192, 128};
  const bool all_see_all = !s.mask.window_left && !s.mask.window_right;
  const std::int64_t cluster = all_see_all && std::min(s.seqlen_q, s.seqlen_kv) >= 8192 ? 2 : 1;
  if (width > 128) return {128, 80, cluster};
  return s.seqlen_kv > 4096 || wanted.cluster > 1 ? QueryTile{128, 176, cluster} : QueryTile{128, 128};
}

std::int64_t flash_v3_cluster(const AttentionShape& s, const TilePlan& plan) {
  if (plan.cluster != 0) return plan.cluster;
  const QueryTile first = flash_v3_tile(s, plan);
  return plan.block_q == first.block_q && plan.block_kv == first.block_kv ? first.cluster : 1;
}

}  // namespace hbmscope
