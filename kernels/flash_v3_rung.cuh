#pragma once
#include "kernels/flash_v3.cuh"

/// The host's side of a rung below flash_v3: compiled for bf16 and the larger tile of a head_dim, one CTA for each
/// query tile.
#define HBMSCOPE_FLASH_V3_RUNG(letter, threads)                                                                       \
  namespace {                                                                                                         \
  void launch(const Call& call) {                                                                                     \
    with_flash_v3_tile(call.args.head_dim, call.args.head_dim_v, [&](auto tile) {                                     \
      using Tile = QFromSmem<decltype(tile)>;                                                                         \
      const auto kernel = call.counted ? flash_v3##letter##_kernel<BFloat16, Tile, true>                              \
                                       : flash_v3##letter##_kernel<BFloat16, Tile, false>;                            \
      allow_smem(call, reinterpret_cast<const void*>(kernel), Tile::kSmem, "flash_v3" #letter);                       \
      kernel<<<query_tiles<Tile>(call.args), threads, Tile::kSmem, call.stream>>>(call.args, input_maps<Tile>(call)); \
      check_launch("flash_v3" #letter);                                                                               \
    });                                                                                                               \
  }                                                                                                                   \
  std::vector<Temporary> temporaries(const AttentionShape&, const TilePlan&) {                                        \
    return {};                                                                                                        \
  }                                                                                                                   \
  std::vector<Stage> stages(const AttentionShape&, const TilePlan&) {                                                 \
    return {{"fused", launch}};                                                                                       \
  }                                                                                                                   \
  TilePlan plan(const AttentionShape& s, const TilePlan& wanted) {                                                    \
    TilePlan p = wanted;                                                                                              \
    with_flash_v3_tile(s.head_dim, s.head_dim_v,                                                                      \
                       [&](auto tile) { take_tile<decltype(tile)>("flash_v3" #letter, p); });                         \
    return p;                                                                                                         \
  }                                                                                                                   \
  }                                                                                                                   \
  extern const Pipeline kPipeline_flash_v3##letter{                                                                   \
      "flash_v3" #letter, "flash_v3", "kernels/flash_v3" #letter ".cu", unsupported_by_rung, plan, temporaries, stages};
