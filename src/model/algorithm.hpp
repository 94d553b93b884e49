#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "model/attention_shape.hpp"
#include "model/tile_plan.hpp"
#include "model/traffic.hpp"

namespace hbmscope {

/// One tile of one tensor: which (batch, head) pair it belongs to, and its place in the grid of tiles.
struct TileId {
  Tensor tensor;
  std::int64_t batch_head;  ///< batch * heads of that tensor + head
  std::int64_t row;         ///< tile index along the sequence
  std::int64_t column = 0;  ///< tile index along keys (S, P, ...) or along head_dim_v
};

/// What walk() reports to. A step is one turn of a CTA's inner loop: what it asks for before it computes.
class TileListener {
 public:
  virtual ~TileListener() = default;
  virtual void load(const TileId& tile, Bytes bytes) = 0;
  virtual void store(const TileId& tile, Bytes bytes) = 0;
  virtual void step() {}
};

/// One kernel launch: a grid of CTAs, and the loop nest of one of them.
struct KernelWalk {
  std::string_view stage;  ///< "qk", "softmax", "pv", "fused", "combine", ...
  std::int64_t num_ctas = 0;
  std::int64_t passes_per_cta = 1;  ///< outer turns of one CTA's loop nest; a walk reports one at a time
  /// Reports the tiles of one pass of CTA `cta`, counted in ascending order (query tile fastest, then head, then
  /// batch).
  std::function<void(std::int64_t cta, std::int64_t pass, TileListener& to)> walk_pass;
  std::int64_t tiles_per_head = 1;  ///< CTAs of one (batch, head) pair, for CtaOrder
  /// Query heads (or packed groups of them) that read one kv head, where the CTAs of every (batch, head) pair do the
  /// same to their own tiles; 0 where they do not. Lets a simulation take down one head for all.
  std::int64_t heads_per_kv = 0;
  std::int64_t tiles_per_pass = 1;  ///< tiles that the inner loop looks at, live or not: what a walk costs
  /// Its CTAs stream the same K and V (or Q and dO) tiles, so the pace at which they do decides how often they meet in
  /// L2.
  bool shares_streams = false;
  std::int64_t cluster = 1;         ///< CTAs that share each walk and start together
  std::int64_t smem_bytes = 0;      ///< of one CTA
  std::int64_t register_bytes = 0;  ///< of one CTA: its fp32 accumulators and what goes with them
  /// By how much longer, in parts of one, a step of a CTA takes for each older one on its SM, which goes first.
  double younger_stall = 0;
};

struct StageTraffic {
  std::string_view stage;
  Traffic traffic{Boundary::sm_l2};
};

struct FlopCount {
  Flop matmul;           ///< 2 (d + d_v) a live pair (forward); padding and skipped tiles not counted
  Flop executed_matmul;  ///< whole padded tiles of every visited tile, head dims padded to 16: what the tensor pipe is
                         ///< charged
  Count exp;             ///< exponentials of live pairs
};

enum class PlanKey : std::uint8_t {
  block_q,
  block_kv,
  variant,
  pack_gqa,
  cluster,
  num_kv_splits,
  atomics,
  gemm_tile,
  softmax_reads,
  scale_pass,
  mask_pass,
  dropout,
  fp32_scores,
  repeat_kv,
  order,
  stages,
};

/// An attention algorithm. walk() is the loop nest as the paper's box has it; closed_form() the algebra that predicts
/// its bytes. They share no helper, and a test demands that they agree byte for byte.
struct Algorithm {
  std::string_view name;
  std::string_view summary;
  std::string_view reference;  ///< paper or code and section
  std::string_view formula;  ///< its sm_l2 bytes for one head without a mask, d_v = d and one query head a kv head, as
                             ///< a reader would write them
  Pass pass = Pass::forward;
  std::span<const PlanKey> plan_keys;
  std::vector<KernelWalk> (*walk)(const AttentionShape&, const TilePlan&);
  std::vector<StageTraffic> (*closed_form)(const AttentionShape&, const TilePlan&);  ///< in launch order, at sm_l2
  FlopCount (*flops)(const AttentionShape&, const TilePlan&);
};

/// All algorithms, in the order in which they are listed.
std::span<const Algorithm> algorithms();
/// The algorithm of that name, or an Error with the nearest names.
const Algorithm& algorithm(std::string_view name);

/// Sum over stages.
Traffic total(std::span<const StageTraffic> stages);

/// Reports every tile of every kernel in ascending CTA order.
void walk(const std::vector<KernelWalk>& kernels, TileListener& to);

}  // namespace hbmscope
