#pragma once
#include "kernels/gemm_mma.cuh"

/// One tile of a matrix product on tensor cores: C[kRows, kColumns] = A[kRows, depth] B[depth, kColumns], 16-bit
/// operands, fp32 accumulators. The depth is cut into slices of 64; kStages slices of both operands lie in SMEM at
/// once, so that cp.async brings the next ones while one is multiplied.
namespace hbmscope::kernels {

/// C += A B over all slices. `load(k, a_slice, b_slice)` starts the copies of slice k. Ends with SMEM free for this
/// warp, but with other warps still reading.
template <class Product, class Load>
__device__ inline void multiply_slices(Product& product, std::uint32_t smem, int slices, Load&& load) {
  using Tile = typename Product::Tile;
  constexpr int kStages = Tile::kStages;
  const auto a_slice = [=](int stage) { return smem + stage * (Tile::kSliceA + Tile::kSliceB); };
  const auto b_slice = [=](int stage) { return a_slice(stage) + Tile::kSliceA; };

#pragma unroll 1
  for (int k = 0; k < kStages; ++k) {
    if (k < slices) load(k, a_slice(k), b_slice(k));
    commit_copies();
  }
  int stage = 0;
#pragma unroll 1
  for (int k = 0; k < slices; ++k) {
    if (k == 0) {
      wait_copies<kStages - 1>();
    } else {
      wait_copies<kStages - 2>();
    }
    __syncthreads();  // slice k has come, and all warps are done with slice k - 1
    if (k > 0) {
      const int freed = stage == 0 ? kStages - 1 : stage - 1, next = k - 1 + kStages;
      if (next < slices) load(next, a_slice(freed), b_slice(freed));
      commit_copies();  // an empty group too, so that the count of groups stays that of slices
    }
    product.multiply_slice(a_slice(stage), b_slice(stage));
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
}

}  // namespace hbmscope::kernels
