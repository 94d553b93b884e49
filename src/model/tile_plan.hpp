#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hbmscope {

enum class FlashV1Variant : std::uint8_t {
  paper,     ///< Algorithm 1: O, l and m initialised in HBM, re-read and re-written in every pass over the keys
  released,  ///< the first public CUDA kernels: fp32 Otmp and one LSE between passes, nothing initialised
};

/// What an atomic add to dQacc costs: a write only (what the SM sends) or a read and a write (what memory does).
enum class Atomics : std::uint8_t { write_only, rmw };

/// In which order a grid's CTAs start.
enum class CtaOrder : std::uint8_t {
  ascending,                  ///< query tiles from the first, head by head
  longest_first,              ///< query tiles from the last, which sees most keys under a causal mask, head by head
  longest_first_interleaved,  ///< the last query tile of every head, then the one before it of every head, ...
};

/// naive's tiles of S go to CTAs panel by panel: as many columns of tiles as this much of K fills, at least one, and in
/// a panel row by row. So most of K of the panel in hand stays in L2, however long a head is.
inline constexpr std::int64_t kPanelBytes = 4 << 20;

/// CTAs of a cluster at most: 8 everywhere, 16 where a kernel says that it will do without portability (CUDA C++
/// Programming Guide, thread block clusters).
inline constexpr std::int64_t kMaxCluster = 16;

/// How one kernel is tiled. Each algorithm reads its own part (Algorithm::plan_keys) and ignores the rest.
struct TilePlan {
  std::int64_t block_q = 0;   ///< query rows of a tile (Br in the papers); 0: not chosen yet
  std::int64_t block_kv = 0;  ///< key rows of a tile (Bc in the papers); 0: not chosen yet
  FlashV1Variant variant = FlashV1Variant::paper;
  std::optional<bool>
      pack_gqa;  ///< the query heads of one kv head share a tile; unset: split_kv packs, flash_v2 does not
  /// Adjacent query tiles that receive each K and V tile from one multicast; 0: not chosen yet, and counted as 1.
  std::int64_t cluster = 0;
  std::int64_t num_kv_splits = 1;
  Atomics atomics = Atomics::write_only;
  /// naive: GEMM tiles [rows, columns] whose operands are read anew by each tile; none: each operand once a kernel, as
  /// the papers count.
  std::optional<std::array<std::int64_t, 2>> gemm_tile;
  std::int64_t softmax_reads = 1;  ///< 1 a row stays on chip, 2 online, 3 maximum, sum and scaling apart
  bool scale_pass = false;         ///< a kernel of its own multiplies S by 1/sqrt(d)
  bool mask_pass = false;          ///< a kernel of its own masks S
  bool dropout = false;            ///< a kernel of its own drops P and keeps a one-byte mask
  bool fp32_scores = false;        ///< S is stored in fp32
  bool repeat_kv = false;          ///< K and V are first copied to every query head
  CtaOrder order = CtaOrder::ascending;
  std::int64_t stages = 1;  ///< K and V tiles held on chip at once

  friend bool operator==(const TilePlan&, const TilePlan&) = default;
};

inline std::int64_t cluster_of(const TilePlan& plan) {
  return plan.cluster == 0 ? 1 : plan.cluster;
}

}  // namespace hbmscope
