#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace hbmscope {

enum class Dtype : std::uint8_t { fp32, fp16, bf16, fp8 };

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;  ///< as on the command line and in JSON
  std::int64_t bytes;     ///< per element
  int mantissa_bits;      ///< stored ones; the spacing of numbers near 1 is 2^-mantissa_bits
  int min_exponent;       ///< of the smallest normal number, 2^min_exponent
  double max;             ///< largest finite value
};

/// IEEE 754 binary32 and binary16, bfloat16, and FP8 E4M3 of the OCP 8-bit floating point specification (no infinity,
/// max 448).
inline constexpr std::array<DtypeInfo, 4> kDtypes{{
    {Dtype::fp32, "fp32", 4, 23, -126, 3.40282346638528859812e38},
    {Dtype::fp16, "fp16", 2, 10, -14, 65504.0},
    {Dtype::bf16, "bf16", 2, 7, -126, 3.38953138925153547590e38},
    {Dtype::fp8, "fp8", 1, 3, -6, 448.0},
}};

constexpr const DtypeInfo& info(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)];
}

inline constexpr std::int64_t kAccumulatorBytes =
    4;  ///< fp32 accumulators that a kernel keeps in HBM (Otmp, Oacc, dQacc)
inline constexpr std::int64_t kStatisticBytes = 4;  ///< one fp32 softmax statistic a row (l, m, LSE, D)

}  // namespace hbmscope
