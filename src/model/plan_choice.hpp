#pragma once
#include <string>
#include <string_view>

#include "model/algorithm.hpp"
#include "model/gpu_spec.hpp"

namespace hbmscope {

/// What a tile takes on chip, in bytes of SMEM, and the sum in words: "Q 128 x 128 x 2 + ...".
struct SmemTally {
  Bytes total;
  std::string words;
};
SmemTally smem_tally(const Algorithm& algorithm, const AttentionShape& shape, const TilePlan& plan);

/// Fills in what `wanted` leaves open: flash_v1 takes Algorithm 1's blocks for `sram` bytes; the others the largest of
/// a short list of tiles (128 x 128 first) that fits, with 64, 32 or 16 query rows where a head, or a packed group of
/// them, has no more; naive takes 128 x 128 GEMM tiles. A block that was asked for and does not fit is an Error that
/// shows the tally.
TilePlan choose_plan(const Algorithm& algorithm, const AttentionShape& shape, const TilePlan& wanted, Bytes sram);

/// Key splits that fill the GPU: the smallest number, up to 128 and to the number of key tiles, whose CTAs leave the
/// least of their last wave idle; 1 where the query tiles alone occupy 80 % of the SMs (the release's own rule has that
/// bound too).
std::int64_t choose_kv_splits(const AttentionShape& shape, const TilePlan& plan, std::int64_t num_sms);

/// Rows of a tile of queries, and of the tiles of keys that pass it; how many neighbours share those
/// (TilePlan::cluster).
struct QueryTile {
  std::int64_t block_q, block_kv, cluster = 1;
};
/// Columns of flash_v3's tiles: head_dim and head_dim_v, of up to 256, padded to whole panels: to 64, 128 or 256, of
/// fp8 to 128 or 256.
std::int64_t flash_v3_width(const AttentionShape& shape);
/// SMEM that it takes in fp8 for tiles of V turned round, in panels of 128 keys; 0 in 16 bits.
std::int64_t flash_v3_turned_bytes(const AttentionShape& shape, const TilePlan& plan);
/// What flash_v3 takes first, on Hopper: the fastest that the search found there (reports/h200/tiles.md), in fp8 the
/// fastest of a few that were tried. With three warpgroups of 64 rows, where their registers suffice, each key is read
/// for more queries; causal heads of up to 1,024 queries are computed in smaller tiles, of which the mask hides less.
/// With many keys a larger tile of them pays, with few it is too often the last one, half empty. Pairs of CTAs that
/// share their keys pay beyond 64 columns where all see all keys, and heads are so long that one more tile for an odd
/// one is nothing; at 128 columns there are some with the larger tile only, which is that of choice where `wanted`
/// asks for a cluster.
QueryTile flash_v3_tile(const AttentionShape& shape, const TilePlan& wanted = {});
/// The cluster that a plan of flash_v3 asks for or, where it leaves that open and has the tile above, the one above.
std::int64_t flash_v3_cluster(const AttentionShape& shape, const TilePlan& plan);

/// What `--algorithm flash` names: the fastest of our forward kernels for this shape on this GPU, as the ladder of
/// kernels found it on an H200 (reports/h200/ladder.md, forward.md): flash_v3 on Hopper but in fp32, else flash_v2.
std::string_view fastest_flash(const AttentionShape& shape, const GpuSpec& gpu);

/// What a plan of an algorithm needs of a GPU and this one lacks, as its file states the architecture: "compute
/// capability 9.0 (wgmma, ...)". Empty where it lacks nothing, or where nobody says what it is.
std::string_view lacking(const Algorithm& algorithm, const TilePlan& plan, const GpuSpec& gpu);

/// Tiles of the GEMMs of naive where the plan counts them, unless asked otherwise.
inline constexpr std::array<std::int64_t, 2> kDefaultGemmTile{128, 128};

}  // namespace hbmscope
