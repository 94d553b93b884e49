#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/units.hpp"

struct CUstream_st;  // what cudaStream_t points to

/// Kernels of known bytes, known FLOPs and known results. They start work on the current device and return; whoever
/// calls takes the time. Pointers are to device memory, 16-byte aligned, unless it says host.
namespace hbmscope::kernels {

// ---- yardsticks: any number of bytes -------------------------------------------------------------------------------

/// `byte_counters`, bytes read and bytes written, are added to by the counted variant; null picks the timed one.
void launch_copy(void* to, const void* from, std::int64_t bytes, unsigned long long* byte_counters,
                 CUstream_st* stream);
/// Adds checksum_of what it reads to the unsigned 64-bit number at `checksum`: 8 bytes, which no byte counter counts.
void launch_read(void* checksum, const void* from, std::int64_t bytes, unsigned long long* byte_counters,
                 CUstream_st* stream);
/// Writes kFillByte everywhere.
void launch_fill(void* to, std::int64_t bytes, unsigned long long* byte_counters, CUstream_st* stream);

inline constexpr unsigned char kFillByte = 0x5a;
/// Sum of the 32-bit little-endian words, the last one completed with zeros, modulo 2^64. `host` is host memory.
std::uint64_t checksum_of(const void* host, std::int64_t bytes);

// ---- probes: the roofs of `gpu probe` ------------------------------------------------------------------------------

/// All SMs read the same `bytes` over and over, past L1. Less than the L2 and, where its halves keep copies of each
/// other's lines, less than half of it: 16 MiB is a good size on Hopper.
struct L2ReadProbe {
  const void* from = nullptr;
  std::int64_t bytes = 0;                  ///< a multiple of kL2ProbeTile
  std::int64_t passes = 1;                 ///< over all of it
  unsigned long long* checksum = nullptr;  ///< passes * checksum_of is added
};
inline constexpr std::int64_t kL2ProbeTile = 16 * 1024;
void launch_l2_read(const L2ReadProbe& probe, CUstream_st* stream);
Bytes l2_read_bytes(const L2ReadProbe& probe);

/// How long an SM was at work, by its own clock and by the GPU's.
struct SmClock {
  long long cycles, nanoseconds;
};

/// Each warp (mma.sync) or warpgroup (wgmma) adds A B^T to its fp32 accumulators `iterations` times and leaves the sum
/// of all their elements. A is [kRows, kDepth], B [kColumns, kDepth], both bf16, contiguous, one after the other.
struct TensorProbe {
  const void* operands = nullptr;  ///< random numbers: zeros would flatter the power limit
  float* sums = nullptr;           ///< results() of them
  std::int64_t iterations = 1;     ///< from 20,000 on the launch itself no longer shows
  SmClock* clocks = nullptr;       ///< one for each SM, by its number; null: not wanted
};
/// m16n8k16 with operands in registers.
struct MmaSync {
  static constexpr int kRows = 64, kColumns = 64, kDepth = 16;
};
void launch_mma_sync(const TensorProbe& probe, CUstream_st* stream);
Flop mma_sync_flops(const TensorProbe& probe);
std::int64_t mma_sync_results();

/// m64n256k16 with operands in SMEM; sm_90a only.
struct Wgmma {
  static constexpr int kRows = 64, kColumns = 256, kDepth = 64;
};
/// Why this device or this build cannot run it, as a clause; empty where it can.
std::string wgmma_unsupported();
void launch_wgmma(const TensorProbe& probe, CUstream_st* stream);
Flop wgmma_flops(const TensorProbe& probe);
std::int64_t wgmma_results();

/// What each of the sums should be, but for rounding. `host` is a copy of the operands in host memory.
double expected_sum(const std::uint16_t* host, int rows, int columns, int depth, std::int64_t iterations);

/// x <- 2^-x, in eight independent chains a thread, on the special function units. Each warp leaves the mean of its x,
/// which is kExp2Fixpoint from 100 iterations on.
struct Exp2Probe {
  float* means = nullptr;  ///< exp2_results() of them
  std::int64_t iterations = 1;
};
inline constexpr float kExp2Fixpoint = 0.641185744505f;  // x = 2^-x
void launch_exp2(const Exp2Probe& probe, CUstream_st* stream);
Count exp2_operations(const Exp2Probe& probe);
std::int64_t exp2_results();

}  // namespace hbmscope::kernels
