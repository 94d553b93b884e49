#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run.hpp"

/// What stands beside the numbers of a run.
namespace hbmscope {

struct PlainFormula {
  std::string_view text;  ///< empty where the plan has more than the algorithm's paper
  bool exact = false;     ///< gives the very bytes of each head; a mask, GQA or d_v != d leave it an upper guide
};
/// The formula of the algorithm's sm_l2 bytes under this kind of plan.
PlainFormula plain_formula(const Algorithm& algorithm, const AttentionShape& shape, const TilePlan& plan);

/// What of a pass the L2 can hold, all heads taken together.
struct L2Fit {
  /// The naive pipeline's N x N tensors: S and P, backward P, dP and dS. Nothing where that pipeline is left out: its
  /// bytes may not fit 64 bits.
  std::optional<Bytes> squares;
  bool squares_fit = false;  ///< they fit the effective L2
  std::optional<Bytes> kv;   ///< K and V of the heads whose CTAs run at one time, of the last fused algorithm
  bool kv_fits = false;
};
/// Nothing without an L2.
std::optional<L2Fit> l2_fit(const RunResult& result, Pass pass);

/// Tensors of the naive pipeline that make up more than half of its bytes through HBM.
enum class NaiveBulk : std::uint8_t {
  squares,  ///< S and P; also where none of the three does, and where nothing was simulated
  kv,       ///< K and V
  rows,     ///< Q and O
};
NaiveBulk naive_bulk(const AlgorithmResult& naive);

/// What a reader must know to read the numbers right: rows without keys, S and P that stay in L2, memory that does not
/// suffice, overflow, ...
std::vector<std::string> warnings_of(const RunResult& result);

}  // namespace hbmscope
