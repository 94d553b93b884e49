#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "helpers.hpp"
#include "simulate/l2_model.hpp"

/// Machines, shapes and kernels for the tests of the simulated L2.
namespace hbmscope::testing {

/// An H200: 132 SMs, 228 KiB of SMEM and 256 KiB of registers each.
inline L2Config h200(Bytes capacity) {
  return {capacity, false, 132, 228 * 1024, 256 * 1024};
}
inline const Bytes kInfinite{INT64_MAX};

inline std::vector<KernelWalk> kernels_of(std::string_view name, const AttentionShape& shape, const TilePlan& plan) {
  return algorithm(name).walk(shape, plan);
}

inline AttentionShape heads_of(std::int64_t heads, std::int64_t seqlen, Mask mask = Mask::none()) {
  AttentionShape s;
  s.num_heads = s.num_kv_heads = heads;
  s.seqlen_q = s.seqlen_kv = seqlen;
  s.mask = mask;
  return s;
}
inline TilePlan tiles_of(std::int64_t block_q, std::int64_t block_kv) {
  TilePlan plan;
  plan.block_q = block_q;
  plan.block_kv = block_kv;
  plan.gemm_tile = {block_q, block_kv};
  return plan;
}

}  // namespace hbmscope::testing
