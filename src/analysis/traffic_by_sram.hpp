#pragma once
#include <span>
#include <vector>

#include "model/algorithm.hpp"

namespace hbmscope {

/// What an algorithm moves if one CTA has `sram` bytes on chip.
struct SramPoint {
  Bytes sram;
  Bytes traffic;  ///< at sm_l2: the two-level model of the papers, whose fast memory is M
  TilePlan plan;
};

/// Longest sequence that traffic_by_sram() takes: small memories cut it into many tiles.
inline constexpr std::int64_t kMaxSeqlenBySram = std::int64_t{1} << 20;

/// The algorithm's closed form for each of these memories, with the tiles that it would take there: naive reads each
/// operand of a kernel once, whatever M is; flash_v1 takes Algorithm 1's blocks; the others keep the fewest keys that a
/// tile has (16) and as many query rows as fit, at most all. Memories that hold no tile are left out.
std::vector<SramPoint> traffic_by_sram(const Algorithm& algorithm, const AttentionShape& shape,
                                       std::span<const Bytes> srams);

}  // namespace hbmscope
