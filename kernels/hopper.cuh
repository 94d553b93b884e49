#pragma once
#include <cuda.h>

#include "kernels/common.cuh"

/// Hopper's own instructions (sm_90a), each under the name of what it does. The PTX ISA describes them in the sections
/// that are named in brackets; their numbers change from version to version.
namespace hbmscope::kernels {

/// Whether this pass of the compiler makes code for a chip that has them.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
inline constexpr bool kHopper = true;
#else
inline constexpr bool kHopper = false;
#endif

// ---- products of a warpgroup [Asynchronous Warpgroup Level Matrix Instructions]
// -------------------------------------------------------------------------

/// Operands lie in SMEM as panels: rows of 64 elements (128 bytes) with their chunks swizzled as in tile.cuh, the first
/// on a multiple of 1024 bytes.
inline constexpr int kPanelWidth = 64;
inline constexpr std::uint32_t kPanelAlignment = 1024;

/// [Matrix Descriptor Format] Bits 0-13 the address, 16-29 the distance of panels, which counts only where a
/// product runs along rows, 32-45 the distance of groups of eight rows, all in units of 16 bytes; 62-63 name the
/// swizzle of 128 bytes.
__device__ inline std::uint64_t panel_descriptor(std::uint32_t address, std::uint32_t panel_bytes = 16) {
  return std::uint64_t{(address & 0x3ffff) >> 4} | std::uint64_t{panel_bytes >> 4} << 16 |
         std::uint64_t{1024 >> 4} << 32 | std::uint64_t{1} << 62;
}
/// The same operand `bytes` further.
__device__ inline std::uint64_t further(std::uint64_t descriptor, std::uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

/// [wgmma.fence] Before the first product, and wherever registers of one were written by other instructions.
__device__ inline void fence_wgmma() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void commit_wgmma() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most `kPending` of the committed groups are under way.
template <int kPending>
__device__ inline void wait_wgmma() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// How operand B lies in SMEM: rows are columns of the product (K in Q K^T), or rows of the depth (V in P V).
enum class OperandB { by_column, by_depth };

/// [wgmma.mma_async] c[64 x 8 n] (+)= A[64 x 16] B[16 x 8 n], of fp8 32 in place of 16, under way when it returns;
/// without `add` c is overwritten. Warp w of the four holds rows 16 w to 16 w + 15 of c as multiply_add does: lane l
/// rows l/4 and l/4 + 8, of each block of 8 columns 2 (l%4) and the next.
template <class T, OperandB kB, int kBlocks>
__device__ inline void start_wgmma(float (&c)[kBlocks][4], std::uint64_t a, std::uint64_t b, int add);
/// The same with A in registers, as multiply_add takes it.
template <class T, OperandB kB, int kBlocks>
__device__ inline void start_wgmma(float (&c)[kBlocks][4], const std::uint32_t (&a)[4], std::uint64_t b, int add);

// Registers of c by sixteen columns, as asm names them and as operands.
#define HBMSCOPE_R0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define HBMSCOPE_R1 "%8, %9, %10, %11, %12, %13, %14, %15"
#define HBMSCOPE_R2 "%16, %17, %18, %19, %20, %21, %22, %23"
#define HBMSCOPE_R3 "%24, %25, %26, %27, %28, %29, %30, %31"
#define HBMSCOPE_R4 "%32, %33, %34, %35, %36, %37, %38, %39"
#define HBMSCOPE_R5 "%40, %41, %42, %43, %44, %45, %46, %47"
#define HBMSCOPE_R6 "%48, %49, %50, %51, %52, %53, %54, %55"
#define HBMSCOPE_R7 "%56, %57, %58, %59, %60, %61, %62, %63"
#define HBMSCOPE_R8 "%64, %65, %66, %67, %68, %69, %70, %71"
#define HBMSCOPE_R9 "%72, %73, %74, %75, %76, %77, %78, %79"
#define HBMSCOPE_R10 "%80, %81, %82, %83, %84, %85, %86, %87"
#define HBMSCOPE_R11 "%88, %89, %90, %91, %92, %93, %94, %95"
#define HBMSCOPE_R12 "%96, %97, %98, %99, %100, %101, %102, %103"
#define HBMSCOPE_R13 "%104, %105, %106, %107, %108, %109, %110, %111"
#define HBMSCOPE_R14 "%112, %113, %114, %115, %116, %117, %118, %119"
#define HBMSCOPE_R15 "%120, %121, %122, %123, %124, %125, %126, %127"
#define HBMSCOPE_R_1 HBMSCOPE_R0
#define HBMSCOPE_R_2 HBMSCOPE_R_1 ", " HBMSCOPE_R1
#define HBMSCOPE_R_3 HBMSCOPE_R_2 ", " HBMSCOPE_R2
#define HBMSCOPE_R_4 HBMSCOPE_R_3 ", " HBMSCOPE_R3
#define HBMSCOPE_R_5 HBMSCOPE_R_4 ", " HBMSCOPE_R4
#define HBMSCOPE_R_6 HBMSCOPE_R_5 ", " HBMSCOPE_R5
#define HBMSCOPE_R_7 HBMSCOPE_R_6 ", " HBMSCOPE_R6
#define HBMSCOPE_R_8 HBMSCOPE_R_7 ", " HBMSCOPE_R7
#define HBMSCOPE_R_9 HBMSCOPE_R_8 ", " HBMSCOPE_R8
#define HBMSCOPE_R_10 HBMSCOPE_R_9 ", " HBMSCOPE_R9
#define HBMSCOPE_R_11 HBMSCOPE_R_10 ", " HBMSCOPE_R10
#define HBMSCOPE_R_12 HBMSCOPE_R_11 ", " HBMSCOPE_R11
#define HBMSCOPE_R_13 HBMSCOPE_R_12 ", " HBMSCOPE_R12
#define HBMSCOPE_R_14 HBMSCOPE_R_13 ", " HBMSCOPE_R13
#define HBMSCOPE_R_15 HBMSCOPE_R_14 ", " HBMSCOPE_R14
#define HBMSCOPE_R_16 HBMSCOPE_R_15 ", " HBMSCOPE_R15
#define HBMSCOPE_C(n)                                                                                                  \
  "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3]), "+f"(c[n + 1][0]), "+f"(c[n + 1][1]), "+f"(c[n + 1][2]), \
      "+f"(c[n + 1][3])
#define HBMSCOPE_C_1 HBMSCOPE_C(0)
#define HBMSCOPE_C_2 HBMSCOPE_C_1, HBMSCOPE_C(2)
#define HBMSCOPE_C_3 HBMSCOPE_C_2, HBMSCOPE_C(4)
#define HBMSCOPE_C_4 HBMSCOPE_C_3, HBMSCOPE_C(6)
#define HBMSCOPE_C_5 HBMSCOPE_C_4, HBMSCOPE_C(8)
#define HBMSCOPE_C_6 HBMSCOPE_C_5, HBMSCOPE_C(10)
#define HBMSCOPE_C_7 HBMSCOPE_C_6, HBMSCOPE_C(12)
#define HBMSCOPE_C_8 HBMSCOPE_C_7, HBMSCOPE_C(14)
#define HBMSCOPE_C_9 HBMSCOPE_C_8, HBMSCOPE_C(16)
#define HBMSCOPE_C_10 HBMSCOPE_C_9, HBMSCOPE_C(18)
#define HBMSCOPE_C_11 HBMSCOPE_C_10, HBMSCOPE_C(20)
#define HBMSCOPE_C_12 HBMSCOPE_C_11, HBMSCOPE_C(22)
#define HBMSCOPE_C_13 HBMSCOPE_C_12, HBMSCOPE_C(24)
#define HBMSCOPE_C_14 HBMSCOPE_C_13, HBMSCOPE_C(26)
#define HBMSCOPE_C_15 HBMSCOPE_C_14, HBMSCOPE_C(28)
#define HBMSCOPE_C_16 HBMSCOPE_C_15, HBMSCOPE_C(30)

// `n` columns are `x` times sixteen; the registers of c come first, then the operands numbered by the rest. A step of
// the depth is 32 bytes of a row, `depth` elements. Only 16-bit operands have a say in how they lie: `ss` and `rs` say
// it.
#define HBMSCOPE_WGMMA(T, dtype, kB, depth, ss, rs, n, x, r0, r1, r2, r3, r4, r5)                                    \
  template <>                                                                                                        \
  __device__ inline void start_wgmma<T, kB, 2 * x>(float(&c)[2 * x][4], std::uint64_t a, std::uint64_t b, int add) { \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #r2 ", 0; wgmma.mma_async.sync.aligned.m64n" #n "k" #depth       \
                 ".f32." dtype "." dtype " {" HBMSCOPE_R_##x "}, %" #r0 ", %" #r1 ", p, 1, 1" ss "; }"                \
                 : HBMSCOPE_C_##x                                                                                    \
                 : "l"(a), "l"(b), "r"(add));                                                                        \
  }                                                                                                                  \
  template <>                                                                                                        \
  __device__ inline void start_wgmma<T, kB, 2 * x>(float(&c)[2 * x][4], const std::uint32_t(&a)[4], std::uint64_t b, \
                                                   int add) {                                                        \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #r5 ", 0; wgmma.mma_async.sync.aligned.m64n" #n "k" #depth       \
                 ".f32." dtype "." dtype " {" HBMSCOPE_R_##x "}, {%" #r0 ", %" #r1 ", %" #r2 ", %" #r3 "}, %" #r4    \
                 ", p, 1, 1" rs "; }"                                                                                \
                 : HBMSCOPE_C_##x                                                                                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                                    \
  }
#define HBMSCOPE_WGMMA_ALL(...)                                                    \
  HBMSCOPE_WGMMA(Half, "f16", OperandB::by_column, 16, ", 0, 0", ", 0", __VA_ARGS__)      \
  HBMSCOPE_WGMMA(Half, "f16", OperandB::by_depth, 16, ", 0, 1", ", 1", __VA_ARGS__)       \
  HBMSCOPE_WGMMA(BFloat16, "bf16", OperandB::by_column, 16, ", 0, 0", ", 0", __VA_ARGS__) \
  HBMSCOPE_WGMMA(BFloat16, "bf16", OperandB::by_depth, 16, ", 0, 1", ", 1", __VA_ARGS__)  \
  HBMSCOPE_WGMMA(Fp8, "e4m3", OperandB::by_column, 32, "", "", __VA_ARGS__)
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// clang-format off
HBMSCOPE_WGMMA_ALL(64, 4, 32, 33, 34, 35, 36, 37)
HBMSCOPE_WGMMA_ALL(80, 5, 40, 41, 42, 43, 44, 45)
HBMSCOPE_WGMMA_ALL(96, 6, 48, 49, 50, 51, 52, 53)
HBMSCOPE_WGMMA_ALL(112, 7, 56, 57, 58, 59, 60, 61)
HBMSCOPE_WGMMA_ALL(128, 8, 64, 65, 66, 67, 68, 69)
HBMSCOPE_WGMMA_ALL(144, 9, 72, 73, 74, 75, 76, 77)
HBMSCOPE_WGMMA_ALL(160, 10, 80, 81, 82, 83, 84, 85)
HBMSCOPE_WGMMA_ALL(176, 11, 88, 89, 90, 91, 92, 93)
HBMSCOPE_WGMMA_ALL(192, 12, 96, 97, 98, 99, 100, 101)
HBMSCOPE_WGMMA_ALL(256, 16, 128, 129, 130, 131, 132, 133)
// clang-format on
#endif
#undef HBMSCOPE_WGMMA_ALL
#undef HBMSCOPE_WGMMA
#undef HBMSCOPE_R_1
#undef HBMSCOPE_C_1
#undef HBMSCOPE_R_2
#undef HBMSCOPE_C_2
#undef HBMSCOPE_R_3
#undef HBMSCOPE_C_3
#undef HBMSCOPE_R_4
#undef HBMSCOPE_C_4
#undef HBMSCOPE_R_5
#undef HBMSCOPE_C_5
#undef HBMSCOPE_R_6
#undef HBMSCOPE_C_6
#undef HBMSCOPE_R_7
#undef HBMSCOPE_C_7
#undef HBMSCOPE_R_8
#undef HBMSCOPE_C_8
#undef HBMSCOPE_R_9
#undef HBMSCOPE_C_9
#undef HBMSCOPE_R_10
#undef HBMSCOPE_C_10
#undef HBMSCOPE_R_11
#undef HBMSCOPE_C_11
#undef HBMSCOPE_R_12
#undef HBMSCOPE_C_12
#undef HBMSCOPE_R_13
#undef HBMSCOPE_C_13
#undef HBMSCOPE_R_14
#undef HBMSCOPE_C_14
#undef HBMSCOPE_R_15
#undef HBMSCOPE_C_15
#undef HBMSCOPE_R_16
#undef HBMSCOPE_C_16
#undef HBMSCOPE_C
#undef HBMSCOPE_R0
#undef HBMSCOPE_R1
#undef HBMSCOPE_R2
#undef HBMSCOPE_R3
#undef HBMSCOPE_R4
#undef HBMSCOPE_R5
#undef HBMSCOPE_R6
#undef HBMSCOPE_R7
#undef HBMSCOPE_R8
#undef HBMSCOPE_R9
#undef HBMSCOPE_R10
#undef HBMSCOPE_R11
#undef HBMSCOPE_R12
#undef HBMSCOPE_R13
#undef HBMSCOPE_R14
#undef HBMSCOPE_R15

// ---- fp8
// ------------------------------------------------------------------------------------------------------------------

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// [cvt] Two fp32 rounded to nearest even, at most +-448, in the lower 16 bits.
template <>
__device__ inline std::uint32_t pack<Fp8>(float low, float high) {
  unsigned short both;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(both) : "f"(high), "f"(low));
  return both;
}
#endif
/// [stmatrix] Four 8 x 8 matrices of 16-bit elements to SMEM, as load_matrices has them.
__device__ inline void store_matrices(std::uint32_t address, const std::uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]), "r"(r[1]),
               "r"(r[2]), "r"(r[3])
               : "memory");
}

// ---- what the asynchronous proxy reads
// -------------------------------------------------------------------------------

/// Makes this thread's writes to SMEM visible to wgmma and bulk copies, which read it on a path of their own;
/// a barrier then makes them visible to whoever starts those.
__device__ inline void publish_to_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- barriers in SMEM [mbarrier]
// ------------------------------------------------------------------------------------

/// An mbarrier: 8 bytes of SMEM. A phase ends when `arrivals` threads have arrived and all announced bytes have come;
/// phases have parity 0, 1, 0, ...
__device__ inline void init_barrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Shows initialised barriers to the copy engine.
__device__ inline void fence_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives, and announces `bytes` that copies will bring.
__device__ inline void arrive_expecting(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/// Waits for the end of the phase of this parity; returns at once where the phase before it has that parity.
__device__ inline void wait_barrier(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{ .reg .pred done; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @done bra DONE; bra AGAIN; "
      "DONE: }" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// ---- tensor copies [cp.async.bulk.tensor]
// --------------------------------------------------------------------------------------

/// Starts a copy of one box of a [batch, heads, rows, width] tensor into SMEM; elements beyond its edges become 0. The
/// barrier learns of its bytes.
__device__ inline void start_tensor_load(std::uint32_t to, const CUtensorMap& map, int x, int row, int head, int batch,
                                         std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(to),
      "l"(&map), "r"(x), "r"(row), "r"(head), "r"(batch), "r"(barrier)
      : "memory");
}

/// For lines that nobody will ask for again: the L2 gives them up before others. [createpolicy]
__device__ inline std::uint64_t evict_first_policy() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
/// The same copy with a policy. [.L2::cache_hint]
__device__ inline void start_tensor_load(std::uint32_t to, const CUtensorMap& map, int x, int row, int head, int batch,
                                         std::uint32_t barrier, std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, "
      "%3, %4, %5}], [%6], %7;" ::"r"(to),
      "l"(&map), "r"(x), "r"(row), "r"(head), "r"(batch), "r"(barrier), "l"(policy)
      : "memory");
}

/// The same into both CTAs of a cluster of two, at the same place of their SMEM; the barrier of each learns of it.
/// [.multicast::cluster]
__device__ inline void start_tensor_multicast(std::uint32_t to, const CUtensorMap& map, int x, int row, int head,
                                              int batch, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
      "{%2, %3, %4, %5}], [%6], %7;" ::"r"(to),
      "l"(&map), "r"(x), "r"(row), "r"(head), "r"(batch), "r"(barrier), "h"(static_cast<unsigned short>(3))
      : "memory");
}

/// Starts a copy of one box from SMEM into such a tensor; what lies beyond its edges is not written.
__device__ inline void start_tensor_store(const CUtensorMap& map, std::uint32_t from, int x, int row, int head,
                                          int batch) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
               "r"(from), "r"(x), "r"(row), "r"(head), "r"(batch)
               : "memory");
}
/// After the last store of a tile.
__device__ inline void commit_tensor_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until this thread's tensor stores have read SMEM: before that it must not be written again, nor the CTA end.
__device__ inline void wait_tensor_stores() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// ---- clusters of CTAs [barrier.cluster, mapa]
// ------------------------------------------------------------------------------------------------

/// This CTA's number in its cluster.
__device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// Waits for all threads of all CTAs of the cluster.
__device__ inline void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
/// Arrives at the barrier that CTA `rank` of the cluster has at this address.
__device__ inline void arrive_at(std::uint32_t barrier, unsigned rank) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
      "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

/// Writes to the place that CTA `rank` of the cluster has at this address, and its barrier, told to expect 4 bytes,
/// learns of it. [st.async]
__device__ inline void send(std::uint32_t to, unsigned rank, unsigned value, std::uint32_t barrier) {
  asm volatile(
      "{ .reg .b32 there, then; mapa.shared::cluster.u32 there, %0, %1; mapa.shared::cluster.u32 then, %3, %1; "
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [there], %2, [then]; }" ::"r"(to),
      "r"(rank), "r"(value), "r"(barrier)
      : "memory");
}

// ---- warps with roles
// ------------------------------------------------------------------------------------------------

/// Gives registers of this warpgroup back, or takes some that others gave [setmaxnreg]: a multiple of 8.
template <int kRegisters>
__device__ inline void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
/// [bar] Barrier `id` (1 to 15) of `threads` threads: waits for all of them.
__device__ inline void sync_named(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// [bar.arrive] The same without waiting.
__device__ inline void arrive_named(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// A word in SMEM that one thread leaves for others.
__device__ inline void store_smem(std::uint32_t to, unsigned word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}
__device__ inline unsigned load_smem(std::uint32_t from) {
  unsigned word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
  return word;
}

}  // namespace hbmscope::kernels
