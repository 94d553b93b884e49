#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "analysis/worked_examples/parts.hpp"
#include "model/paper.hpp"
#include "simulate/traffic_counter.hpp"

// What schedules move, counted and walked.
namespace hbmscope::worked {
namespace {

using V = WorkedValues;
constexpr std::int64_t kN = 8192, kD = 128;

AttentionShape head_8k() {
  return head(kN, kD);
}

/// Walks one CTA after the other and remembers, for each, whether it loads again after its first store.
class StoreOrder : public TileListener {
 public:
  void load(const TileId&, Bytes) override { loads_after_store_ += stored_ ? 1 : 0; }
  void store(const TileId& tile, Bytes) override {
    stored_ = true;
    ++stores_[{tile.tensor, {tile.batch_head, tile.row}}];
  }
  void next_cta() { stored_ = false; }
  [[nodiscard]] Count loads_after_store() const { return Count(loads_after_store_); }
  /// The most that any tile row of the tensor is stored.
  [[nodiscard]] Count stores_of(Tensor tensor) const {
    std::int64_t most = 0;
    for (const auto& [key, count] : stores_) {
      if (key.first == tensor) most = std::max(most, count);
    }
    return Count(most);
  }

 private:
  bool stored_ = false;
  std::int64_t loads_after_store_ = 0;
  std::map<std::pair<Tensor, std::pair<std::int64_t, std::int64_t>>, std::int64_t> stores_;
};

StoreOrder store_order(std::string_view name, const AttentionShape& s, const TilePlan& p) {
  StoreOrder order;
  for (const KernelWalk& kernel : algorithm(name).walk(s, p)) {
    for (std::int64_t cta = 0; cta < kernel.num_ctas; ++cta) {
      order.next_cta();
      for (std::int64_t pass = 0; pass < kernel.passes_per_cta; ++pass) kernel.walk_pass(cta, pass, order);
    }
  }
  return order;
}

void flops_stay_bytes_fall(V& v) {
  const AttentionShape s = head_8k();
  const RunResult r = simulated_run(s, "H100 SXM", {"naive", "flash_v2"});
  const AlgorithmResult &naive = *r.find("naive"), &flash = *r.find("flash_v2");
  v.add("naive_GFLOP", naive.flops.matmul, unit::GFLOP);
  v.add("flash_GFLOP", flash.flops.matmul, unit::GFLOP);
  v.add("naive_exp", naive.flops.exp);
  v.add("flash_exp", flash.flops.exp);
  v.add("naive_hbm_MB", naive.at(Boundary::l2_hbm)->traffic->total(), unit::MB);
  v.add("flash_hbm_MB", flash.at(Boundary::l2_hbm)->traffic->total(), unit::MB);
  v.add("naive_sm_l2_MB", naive.at(Boundary::sm_l2)->traffic->total(), unit::MB);
  v.add("flash_sm_l2_MB", flash.at(Boundary::sm_l2)->traffic->total(), unit::MB);
}

void backward_recomputes(V& v) {
  const AttentionShape s = head_8k();
  const TilePlan p = tiles(128, 64);
  const Flop naive_fwd = flops_of("naive", s).matmul, naive_bwd = flops_of("naive_bwd", s).matmul;
  const Flop flash_fwd = flops_of("flash_v2", s).matmul, flash_bwd = flops_of("flash_v2_bwd", s).matmul;
  const Flop product = flops_of("naive", s).matmul;  // of two products
  v.add("naive_bwd_products", 2 * ratio(naive_bwd, product));
  v.add("flash_bwd_products", 2 * ratio(flash_bwd, product));
  v.add("flop_ratio_bwd", ratio(flash_bwd, naive_bwd));
  v.add("flop_ratio_both", ratio(flash_fwd + flash_bwd, naive_fwd + naive_bwd));
  v.add("naive_MB", traffic_of("naive", s).total() + traffic_of("naive_bwd", s).total(), unit::MB);
  v.add("flash_MB", traffic_of("flash_v2", s, p).total() + traffic_of("flash_v2_bwd", s, p).total(), unit::MB);
}

/// Bytes of a tensor over its size, from a walk: how often it passes.
struct Passes {
  double q, k, o_read, o_write;
};
Passes passes(std::string_view name, const AttentionShape& s, const TilePlan& p) {
  TrafficCounter counter;
  walk(algorithm(name).walk(s, p), counter);
  const auto over_size = [&](Tensor t, Bytes bytes) { return ratio(bytes, tensor_bytes(t, s, p)); };
  const Traffic& t = counter.traffic();
  return {over_size(Tensor::Q, t[Tensor::Q].read), over_size(Tensor::K, t[Tensor::K].read),
          over_size(Tensor::O, t[Tensor::O].read), over_size(Tensor::O, t[Tensor::O].write)};
}

void loop_orders(V& v) {
  const AttentionShape s = head(2048, 64);
  const TilePlan p = tiles(64, 128);
  const Passes v1 = passes("flash_v1", s, p), v2 = passes("flash_v2", s, p);
  v.add("key_tiles", Count(s.seqlen_kv / p.block_kv));
  v.add("query_tiles", Count(s.seqlen_q / p.block_q));
  v.add("v1_q_passes", v1.q);
  v.add("v1_o_reads", v1.o_read);
  v.add("v1_o_writes", v1.o_write);
  v.add("v1_k_passes", v1.k);
  v.add("v2_q_passes", v2.q);
  v.add("v2_o_reads", v2.o_read);
  v.add("v2_o_writes", v2.o_write);
  v.add("v2_k_passes", v2.k);
}

void order_of_growth(V& v) {
  std::vector<std::int64_t> lengths{1024, 8192, 65536, 524288};
  std::vector<double> counted;
  PaperClaims last;
  for (const std::int64_t N : lengths) {
    last = paper_claims(head(N, 64), Bytes(131072));
    counted.push_back(ratio(last.naive_elements, last.algorithm1_elements));
  }
  v.add("seqlen", lengths);
  v.add("counted", counted);
  v.add("m_over_d2", last.reduction_m_over_d2);
  v.add("m_over_3d2", last.reduction_with_constants);
}

void write_once(V& v) {
  const AttentionShape s = head(1024, 64);
  const StoreOrder v2 = store_order("flash_v2", s, tiles(128, 128)), v1 = store_order("flash_v1", s, tiles(128, 128));
  v.add("v2_o_stores_per_tile", v2.stores_of(Tensor::O));
  v.add("v2_lse_stores_per_tile", v2.stores_of(Tensor::LSE));
  v.add("v2_loads_after_store", v2.loads_after_store());
  v.add("v1_o_stores_per_tile", v1.stores_of(Tensor::O));
  v.add("v1_loads_after_store", v1.loads_after_store());
}

/// Square passes in 16 bits that an option adds, and kernels that it adds.
void add_passes(V& v, std::string_view passes_name, std::string_view kernels_name, const TilePlan& with) {
  const AttentionShape s = head_8k();
  const Algorithm& naive = algorithm("naive");
  v.add(passes_name,
        ratio(total(naive.closed_form(s, with)).total() - total(naive.closed_form(s, {})).total(), scores(s)));
  v.add(kernels_name, static_cast<std::int64_t>(naive.closed_form(s, with).size() - naive.closed_form(s, {}).size()));
}

void kernels_add_passes(V& v) {
  TilePlan mask, scale, dropout;
  mask.mask_pass = true;
  scale.scale_pass = true;
  dropout.dropout = true;
  v.add("plain_kernels", static_cast<std::int64_t>(algorithm("naive").closed_form(head_8k(), {}).size()));
  v.add("plain_passes", ratio(square_bytes(traffic_of("naive", head_8k())), scores(head_8k())));
  add_passes(v, "mask_passes", "mask_kernels", mask);
  add_passes(v, "scale_passes", "scale_kernels", scale);
  add_passes(v, "dropout_passes", "dropout_kernels", dropout);
}

void larger_tiles(V& v) {
  const AttentionShape figure = heads(64, 16, 1024, 64);
  std::vector<std::int64_t> blocks{64, 128, 256, 512};
  std::vector<Bytes> v1, v2;
  for (const std::int64_t block : blocks) {
    v1.push_back(traffic_of("flash_v1", figure, tiles(64, block)).total());
    v2.push_back(traffic_of("flash_v2", figure, tiles(block, 64)).total());
  }
  v.add("block", blocks);
  v.add("v1_by_Bc_GB", v1, unit::GB);
  v.add("v2_by_Br_GB", v2, unit::GB);
  v.add("compulsory_GB", compulsory_bytes(figure, Pass::forward), unit::GB);
}

bool falls(const std::vector<double>& values) {
  return std::adjacent_find(values.begin(), values.end(), [](double a, double b) { return b >= a; }) == values.end();
}

constexpr WorkedEntry kEntries[] = {
    {"Q-02", "The FLOPs of the forward pass stay, only bytes fall", Provenance::simulated, flops_stay_bytes_fall,
     [](const V& v) {
       return v.number("naive_GFLOP") == v.number("flash_GFLOP") && v.number("naive_exp") == v.number("flash_exp") &&
              v.number("flash_hbm_MB") < v.number("naive_hbm_MB") / 10 &&
              v.number("flash_sm_l2_MB") < v.number("naive_sm_l2_MB");
     },
     "One head, N = 8,192, d = 128, on an H100; HBM bytes behind a simulated L2, and the tile loads of both."},
    {"Q-04", "The backward pass computes S again: more FLOPs, fewer bytes", Provenance::closed_form,
     backward_recomputes,
     [](const V& v) {
       return v.number("naive_bwd_products") == 4 && v.number("flash_bwd_products") == 5 &&
              std::abs(v.number("flop_ratio_both") - 7.0 / 6) < 1e-12 && v.number("flash_MB") < v.number("naive_MB");
     },
     "Bytes between SM and L2, forward and backward, tiles of 128 x 64, atomic adds as writes."},
    {"Q-09", "KV outermost re-reads Q and the partial O; Q outermost re-reads K and V", Provenance::simulated,
     loop_orders,
     [](const V& v) {
       return v.number("v1_q_passes") == v.number("key_tiles") && v.number("v1_o_reads") == v.number("key_tiles") &&
              v.number("v1_o_writes") == v.number("key_tiles") + 1 && v.number("v1_k_passes") == 1 &&
              v.number("v2_q_passes") == 1 && v.number("v2_o_reads") == 0 && v.number("v2_o_writes") == 1 &&
              v.number("v2_k_passes") == v.number("query_tiles");
     },
     "Counted on the walks of flash_v1 and flash_v2 at N = 2,048 with tiles of 64 x 128; the first O write of flash_v1 "
     "initialises it."},
    {"Q-10", "M/d^2 is an order of growth and promises no factor", Provenance::closed_form, order_of_growth,
     [](const V& v) {
       const std::vector<double> counted = v.list("counted");
       return std::is_sorted(counted.begin(), counted.end()) && counted.back() < v.number("m_over_3d2") &&
              counted.back() > 0.9 * v.number("m_over_3d2") && v.number("m_over_3d2") < v.number("m_over_d2") / 2;
     },
     "M = 65,536 elements, d = 64: what Algorithm 1 saves nears M/(3 d^2) from below as N grows."},
    {"Q-12", "O and one LSE a row are written once, when the loop over keys ends", Provenance::simulated, write_once,
     [](const V& v) {
       return v.number("v2_o_stores_per_tile") == 1 && v.number("v2_lse_stores_per_tile") == 1 &&
              v.number("v2_loads_after_store") == 0 && v.number("v1_o_stores_per_tile") > 1 &&
              v.number("v1_loads_after_store") > 0;
     },
     "Every load and store of each CTA, in order; flash_v1, which stores O at each visit, for contrast."},
    {"Q-26", "Each kernel boundary sends an intermediate through memory", Provenance::closed_form, kernels_add_passes,
     [](const V& v) {
       return v.number("plain_passes") == 4 && v.number("plain_kernels") == 3 && v.number("mask_passes") == 2 &&
              v.number("scale_passes") == 2 && v.number("dropout_passes") == 2.5 && v.number("mask_kernels") == 1 &&
              v.number("scale_kernels") == 1 && v.number("dropout_kernels") == 1;
     },
     "Passes over a square in 16 bits, and kernels; dropout also writes a mask of one byte an element, half a pass."},
    {"Q-27", "Larger tiles, fewer passes over the inputs, less traffic", Provenance::closed_form, larger_tiles,
     [](const V& v) {
       return falls(v.list("v1_by_Bc_GB")) && falls(v.list("v2_by_Br_GB")) &&
              v.list("v1_by_Bc_GB").back() > v.number("compulsory_GB") &&
              v.list("v2_by_Br_GB").back() > v.number("compulsory_GB");
     },
     "Between SM and L2, batch 64, 16 heads, N = 1,024, d = 64; Algorithm 1 by key block, flash_v2 by query block."},
};

}  // namespace

std::span<const WorkedEntry> demonstrations_of_traffic() {
  return kEntries;
}

}  // namespace hbmscope::worked
