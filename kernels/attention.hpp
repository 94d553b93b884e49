#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/units.hpp"
#include "model/attention_shape.hpp"
#include "model/tensor.hpp"
#include "model/tile_plan.hpp"

struct CUstream_st;  // what cudaStream_t points to

/// What the host and the kernels agree on. Tensors lie contiguous as AttentionShape says; S and P are
/// [batch, num_heads, seqlen_q, score_stride].
namespace hbmscope::kernels {

/// Passed to every kernel by value. All pointers are to device memory.
struct AttentionArgs {
  void* tensors[kTensorCount] = {};  ///< null where a kernel has no use for it
  /// Bytes by tensor, read then written; null in a timed launch.
  unsigned long long* byte_counters = nullptr;
  std::int32_t batch = 0, num_heads = 0, num_kv_heads = 0;
  std::int32_t seqlen_q = 0, seqlen_kv = 0;
  std::int32_t head_dim = 0, head_dim_v = 0;
  std::int32_t score_stride = 0;  ///< elements from one row of S or P to the next
  /// Key c is visible to query q iff band_low <= c - q <= band_high (Mask, with its offset worked in).
  std::int32_t band_low = 0, band_high = 0;
  CtaOrder order = CtaOrder::ascending;
  float scale = 0;    ///< 1 / sqrt(head_dim)
  float to_log2 = 0;  ///< scale * log2 e: exp(scale * s) = 2^(to_log2 * s)
  float o_scale = 1;  ///< O leaves multiplied by it (flash_v3)

  template <class T>
#ifdef __CUDACC__
  __host__ __device__
#endif
      T*
      get(Tensor tensor) const {
    return static_cast<T*>(tensors[static_cast<int>(tensor)]);
  }
};

/// Sequences and grids beyond these do not fit the 32-bit indices inside a tile.
inline constexpr std::int64_t kMaxSeqlen = 1 << 28;

/// Row stride of S and P: seqlen_kv rounded up to 16 elements, so that every row starts on a 16-byte boundary.
constexpr std::int64_t score_stride(std::int64_t seqlen_kv) {
  return (seqlen_kv + 15) / 16 * 16;
}

/// What O is multiplied with before it is rounded. Elements of O are means of those of V, so they are no larger but
/// often far smaller, and fp8 has few numbers below 2^-6: there O leaves so much larger that random inputs, within
/// +-5.5, still fit its range. It belongs to the result, as the scale of an fp8 tensor does.
constexpr float output_scale(Dtype dtype) {
  return dtype == Dtype::fp8 ? 64 : 1;
}

/// Fills in all but the pointers.
AttentionArgs make_args(const AttentionShape& shape, const TilePlan& plan);

/// What a kernel takes of an SM, as the compiler and the launch have it.
struct KernelResources {
  std::int64_t registers = 0;    ///< a thread, before warpgroups trade any
  std::int64_t smem_bytes = 0;   ///< a CTA
  std::int64_t local_bytes = 0;  ///< a thread: registers that were spilled, and arrays that have no registers
};

/// One launch to make.
struct Call {
  AttentionArgs args;
  Dtype dtype = Dtype::fp16;
  TilePlan plan;
  bool counted = false;  ///< the variant in which every global access adds its bytes to args.byte_counters
  CUstream_st* stream = nullptr;
  KernelResources* resources = nullptr;  ///< filled in where the caller wants to know and the stage's kernel says so
};

/// One kernel of a pipeline.
struct Stage {
  std::string_view name;  ///< as in the closed form: "qk", "softmax", "pv", "init", "fused"
  void (*launch)(const Call&);
  bool countable = true;  ///< has a counted variant; a library's kernel has none
};

struct Temporary {
  Tensor tensor;
  Bytes bytes;
};

/// The kernels that compute one attention, in launch order.
struct Pipeline {
  std::string_view name;       ///< "naive", "naive_cublas", "flash_v1", "flash_v2"
  std::string_view algorithm;  ///< whose walk and closed form predict its bytes
  std::string_view source;     ///< file that holds it
  /// Why this shape cannot run, as a clause ("head_dim 12 is not a multiple of 8"); empty where it can.
  std::string (*unsupported)(const AttentionShape&);
  /// The plan that runs: what `wanted` fixes must be among the tiles that are compiled, or an Error (kind usage) names
  /// them; what it leaves open (0, nothing) is the tile of choice for this shape.
  TilePlan (*plan)(const AttentionShape&, const TilePlan& wanted);
  std::vector<Temporary> (*temporaries)(const AttentionShape&, const TilePlan&);  ///< besides Q, K, V, O and LSE
  std::vector<Stage> (*stages)(const AttentionShape&, const TilePlan&);
};

/// Why the other pipelines do not run in fp8.
inline constexpr std::string_view kFp8Elsewhere = "of the GPU kernels flash_v3 alone takes fp8";
/// Rules that all pipelines share: head dims in multiples of 8 up to 256, no key padding, sizes within 32-bit indices.
std::string unsupported_shape(const AttentionShape& shape);
/// Sets `block` to the compiled size; one that was asked for and differs is an Error that names the size.
void take_block(std::string_view pipeline, std::string_view option, std::int64_t& block, std::int64_t compiled);

/// All pipelines of this build, in the order in which they are listed.
std::span<const Pipeline* const> pipelines();
/// flash_v3 with other tiles and schedules, for the tile search; none unless this build was configured with
/// HBMSCOPE_TILE_SEARCH.
std::span<const Pipeline* const> candidates();

}  // namespace hbmscope::kernels
