#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "formula.hpp"
#include "kernels/flash_tiles.hpp"
#include "kernels/flash_v1_tiles.hpp"
#include "kernels/flash_v3_tiles.hpp"
#include "model/algorithm.hpp"

/// The kernel files that define a pipeline, or some of its stages, and what the names in their headers stand for on a
/// shape.
namespace hbmscope::testing {

/// What a header's names stand for in one case, and what its lines have to come to.
struct KernelCase {
  AttentionShape shape;
  TilePlan plan;
  Names tile;                              ///< Br, Bc and whatever else the header of that pipeline may name
  std::optional<std::int64_t> smem_bytes;  ///< nothing: not this program's to say
  std::optional<Flop> (*costs)(const FlopCount&, const KernelCase&) = executed;

  static std::optional<Flop> executed(const FlopCount& flops, const KernelCase&) { return flops.executed_matmul; }
};

/// A kernel file as this test knows it: `source` is its text, where the tile sizes stand that no header has.
struct KernelSubject {
  std::string_view pipeline, algorithm;
  std::vector<Dtype> dtypes;
  KernelCase (*make_case)(AttentionShape, FlashV1Variant, const std::string& source);
  std::vector<std::string_view> stages{};  ///< that the file holds; nothing: all
};

/// The one number that `constant = NUMBER` gives in a source.
inline std::int64_t source_constant(const std::string& source, const std::string& name) {
  std::smatch found;
  if (!std::regex_search(source, found, std::regex("\\b" + name + " = (\\d+)\\b"))) {
    throw std::runtime_error("the source has no " + name + " = NUMBER");
  }
  return std::stoll(found[1]);
}

inline KernelCase flash_v2_case(AttentionShape shape, FlashV1Variant, const std::string& source) {
  KernelCase c{shape, {}, {}, {}};
  kernels::with_flash_tile(shape.head_dim, shape.head_dim_v, [&](auto tile) {
    using Tile = decltype(tile);
    c.plan.block_q = Tile::kBlockQ, c.plan.block_kv = Tile::kBlockKv;
    c.plan.stages = Tile::kStages;
    c.tile = {{"Br", Tile::kBlockQ}, {"Bc", Tile::kBlockKv}, {"D", Tile::kHeadDim}, {"S", Tile::kStages}};
    std::smatch found;
    if (!std::regex_search(source, found, std::regex("\\bkSmem = ([^;]+);"))) {
      throw std::runtime_error("the source has no kSmem = EXPRESSION");
    }
    c.smem_bytes = Formula::value(found[1].str(), {{"Tile::kBlockQ", Tile::kBlockQ},
                                                   {"Tile::kBlockKv", Tile::kBlockKv},
                                                   {"Tile::kHeadDim", Tile::kHeadDim},
                                                   {"Tile::kStages", Tile::kStages}});
  });
  return c;
}

template <class Tile>
void take_hopper_tile(KernelCase& c, Tile) {
  c.plan.block_q = Tile::kBlockQ, c.plan.block_kv = Tile::kBlockKv, c.plan.cluster = Tile::kCluster;
  c.tile = {{"Br", Tile::kBlockQ}, {"Bc", Tile::kBlockKv}, {"D", Tile::kHeadDim},
            {"C", Tile::kCluster}, {"S", Tile::kStages},   {"T", 0}};
  if constexpr (requires { Tile::kStagesTurned; }) c.tile["T"] = Tile::kStagesTurned;
  c.smem_bytes = static_cast<std::int64_t>(Tile::kTileBytes);
}
inline KernelCase rung_case(AttentionShape shape, FlashV1Variant, const std::string&) {
  KernelCase c{shape, {}, {}, {}};
  kernels::with_flash_v3_tile(shape.head_dim, shape.head_dim_v, [&](auto tile) { take_hopper_tile(c, tile); });
  return c;
}
inline KernelCase flash_v3_case(AttentionShape shape, FlashV1Variant, const std::string&) {
  KernelCase c{shape, {}, {}, {}};
  if (shape.dtype == Dtype::fp8) {
    kernels::with_flash_v3_fp8_tile(shape.head_dim, shape.head_dim_v, [&](auto tile) { take_hopper_tile(c, tile); });
    return c;
  }
  TilePlan wanted;
  if (shape.seqlen_q % 2 != 0) wanted.block_q = 128, wanted.block_kv = 176, wanted.cluster = 2;  // where there are two
  kernels::with_flash_v3_tile(shape.head_dim, shape.head_dim_v, wanted, [&](auto tile) { take_hopper_tile(c, tile); });
  return c;
}

inline KernelCase flash_v1_case(AttentionShape shape, FlashV1Variant variant, const std::string&) {
  KernelCase c{shape, {}, {}, {}};
  c.plan.variant = variant;
  kernels::with_flash_v1_tile(shape.dtype, shape.head_dim, shape.head_dim_v, [&](auto tile) {
    using Tile = decltype(tile);
    c.plan.block_q = Tile::kBlockQ, c.plan.block_kv = Tile::kBlockKv;
    c.tile = {{"Br", Tile::kBlockQ}, {"Bc", Tile::kBlockKv}, {"D", Tile::kHeadDim}, {"Qb", Tile::kQBuffers}};
    c.smem_bytes = Tile::kSmemBytes;
  });
  return c;
}

inline std::optional<Flop> products_of_whole_slices(const FlopCount& flops, const KernelCase& x) {
  const AttentionShape& s = x.shape;
  const bool padded = s.seqlen_kv % x.tile.at("Bc") != 0 || s.head_dim % 64 != 0 || s.head_dim_v % 64 != 0;
  return padded ? std::nullopt : std::optional(flops.executed_matmul);
}

/// On chip is what the larger of the two products takes: GemmTile<rows, columns, warps, stages, ..> keeps `stages`
/// slices, 64 deep, of both operands. The products are padded to such slices, the model's to the 16 of one instruction,
/// so the two agree where nothing is padded.
inline KernelCase naive_case(AttentionShape shape, FlashV1Variant, const std::string& source) {
  KernelCase c{shape, {}, {}, 0};
  const Names constants{{"kBr", source_constant(source, "kBr")}, {"kBc", source_constant(source, "kBc")}};
  c.plan.gemm_tile = {constants.at("kBr"), constants.at("kBc")};
  c.tile = {{"Br", constants.at("kBr")}, {"Bc", constants.at("kBc")}};
  const std::regex tile("= GemmTile<(\\w+), (\\w+), \\w+, (\\w+), \\w+>");
  for (std::sregex_iterator i(source.begin(), source.end(), tile), end; i != end; ++i) {
    const std::string slices = (*i)[3].str() + "*(" + (*i)[1].str() + "+" + (*i)[2].str() + ")*64*2";
    c.smem_bytes = std::max(*c.smem_bytes, Formula::value(slices, constants));
  }
  c.costs = products_of_whole_slices;
  return c;
}

/// As large a tile for both products; where O is no wider than 64, its tile is half as wide and so takes less SMEM.
inline KernelCase naive_hopper_case(AttentionShape shape, FlashV1Variant, const std::string& source) {
  const std::int64_t rows = source_constant(source, "kBr"), columns = rows;
  const std::int64_t slices = source_constant(source, "kStages"), depth = source_constant(source, "kDepth");
  KernelCase c{shape, {}, {{"Br", rows}, {"Bc", columns}}, {}};
  c.plan.gemm_tile = {rows, columns};
  c.smem_bytes = 2 * (slices * (rows + columns) * depth + 2 * rows * columns);
  c.costs = products_of_whole_slices;
  return c;
}

/// The products are cuBLAS's: each operand and each FLOP counts once, and its tiles are not this program's to say.
inline KernelCase cublas_case(AttentionShape shape, FlashV1Variant, const std::string&) {
  KernelCase c{shape, {}, {}, {}};
  c.costs = [](const FlopCount& flops, const KernelCase&) { return std::optional(flops.matmul); };
  return c;
}

inline const std::vector<KernelSubject>& kernel_subjects() {
  static const std::vector<KernelSubject> table{
      {"naive", "naive", {Dtype::fp16, Dtype::bf16}, naive_case},
      {"naive_hopper", "naive", {Dtype::fp16, Dtype::bf16}, naive_hopper_case, {"qk", "pv"}},
      {"naive_cublas", "naive", {Dtype::fp16, Dtype::bf16}, cublas_case},
      {"flash_v1", "flash_v1", {Dtype::fp16, Dtype::bf16, Dtype::fp32}, flash_v1_case},
      {"flash_v2", "flash_v2", {Dtype::fp16, Dtype::bf16}, flash_v2_case},
      {"flash_v3a", "flash_v3", {Dtype::bf16}, rung_case},
      {"flash_v3b", "flash_v3", {Dtype::bf16}, rung_case},
      {"flash_v3c", "flash_v3", {Dtype::bf16}, rung_case},
      {"flash_v3d", "flash_v3", {Dtype::bf16}, rung_case},
      {"flash_v3e", "flash_v3", {Dtype::bf16}, rung_case},
      {"flash_v3", "flash_v3", {Dtype::fp16, Dtype::bf16, Dtype::fp8}, flash_v3_case},
  };
  return table;
}

}  // namespace hbmscope::testing
