// Included once by each kernels_*.cpp, which defines HBMSCOPE_KERNELS (a namespace) and HBMSCOPE_VECTOR_BYTES first and
// is compiled for its own instruction set. Everything is local to the including file and nothing inline from other
// headers is called: a function that the linker merged across these files could carry instructions that the processor
// lacks into the portable program.
#include "simulate/numerics/kernels.hpp"

namespace hbmscope::numerics::HBMSCOPE_KERNELS {
namespace {

constexpr std::int64_t kBytes = HBMSCOPE_VECTOR_BYTES;
constexpr std::int64_t kLanes = kBytes / 4;
constexpr unsigned kAccumulators =
    kBytes == 64 ? 24 : 12;                // what the register file (32 or 16 vectors) holds beside the operands
constexpr std::int64_t kDepthBlock = 256;  // depth of a panel that stays in the L1 cache, 16 KiB

using Floats = float __attribute__((vector_size(kBytes), may_alias));
using Ints = std::int32_t __attribute__((vector_size(kBytes), may_alias));
using Doubles = double __attribute__((vector_size(kBytes), may_alias));
using HalfFloats = float __attribute__((vector_size(kBytes / 2), may_alias));
using UnalignedInts = std::int32_t __attribute__((vector_size(kBytes), may_alias, aligned(4)));

Floats& at(float* p) {
  return *reinterpret_cast<Floats*>(p);
}
const Floats& at(const float* p) {
  return *reinterpret_cast<const Floats*>(p);
}

/// How a panel's floats become operands of a product in T.
template <class T>
struct Operand;
template <>
struct Operand<float> {
  using Vector = Floats;
  static Vector load(const float* p) { return at(p); }
};
template <>
struct Operand<double> {
  using Vector = Doubles;
  static Vector load(const float* p) {
    return __builtin_convertvector(*reinterpret_cast<const HalfFloats*>(p), Doubles);
  }
};

template <class T>
constexpr unsigned kVectorsOfPanel = static_cast<unsigned>(kPanel* static_cast<std::int64_t>(sizeof(T)) / kBytes);
template <class T>
constexpr unsigned kBlockRows = kAccumulators / kVectorsOfPanel<T> < 12
                                    ? (kAccumulators + kVectorsOfPanel<T> - 1) / kVectorsOfPanel<T>
                                    : 12;

/// kRows rows by one panel, held in registers over the whole depth.
template <class T, unsigned kRows>
void multiply_block(const T* a, std::int64_t a_stride, const float* b, T* c, std::int64_t c_stride, std::int64_t depth,
                    bool accumulate) {
  using Vector = typename Operand<T>::Vector;
  constexpr unsigned kVectors = kVectorsOfPanel<T>;
  constexpr std::int64_t kWidth = kBytes / static_cast<std::int64_t>(sizeof(T));
  Vector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (unsigned r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (unsigned v = 0; v < kVectors; ++v) {
      sum[r][v] = accumulate ? *reinterpret_cast<const Vector*>(c + r * c_stride + v * kWidth) : Vector{};
    }
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    Vector operand[kVectors];
#pragma GCC unroll 16
    for (unsigned v = 0; v < kVectors; ++v) operand[v] = Operand<T>::load(b + k * kPanel + v * kWidth);
#pragma GCC unroll 16
    for (unsigned r = 0; r < kRows; ++r) {
      const T factor = a[r * a_stride + k];
#pragma GCC unroll 16
      for (unsigned v = 0; v < kVectors; ++v) sum[r][v] += factor * operand[v];
    }
  }
#pragma GCC unroll 16
  for (unsigned r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (unsigned v = 0; v < kVectors; ++v) *reinterpret_cast<Vector*>(c + r * c_stride + v * kWidth) = sum[r][v];
  }
}

/// The last rows % kBlockRows rows.
template <class T, unsigned kRows>
void multiply_rest(std::int64_t rows, const T* a, std::int64_t a_stride, const float* b, T* c, std::int64_t c_stride,
                   std::int64_t depth, bool accumulate) {
  if (rows == kRows) {
    multiply_block<T, kRows>(a, a_stride, b, c, c_stride, depth, accumulate);
  } else if constexpr (kRows > 1) {
    multiply_rest<T, kRows - 1>(rows, a, a_stride, b, c, c_stride, depth, accumulate);
  }
}

template <class T>
void multiply(const Product<T>& p) {
  for (std::int64_t first = 0; first < p.depth; first += kDepthBlock) {
    const std::int64_t depth = p.depth - first < kDepthBlock ? p.depth - first : kDepthBlock;
    const bool accumulate = p.accumulate || first > 0;
    for (std::int64_t panel = 0; panel < p.panels; ++panel) {
      const float* b = p.b + panel * p.panel_stride + first * kPanel;
      const T* a = p.a + first;
      T* c = p.c + panel * kPanel;
      std::int64_t rows = p.rows;
      for (; rows >= kBlockRows<T>; rows -= kBlockRows<T>) {
        multiply_block<T, kBlockRows<T>>(a, p.a_stride, b, c, p.c_stride, depth, accumulate);
        a += kBlockRows<T> * p.a_stride;
        c += kBlockRows<T> * p.c_stride;
      }
      multiply_rest<T, kBlockRows<T>>(rows, a, p.a_stride, b, c, p.c_stride, depth, accumulate);
    }
  }
}

void scale_row(float* row, std::int64_t n, float factor) {
  for (std::int64_t i = 0; i < n; i += kLanes) at(row + i) *= factor;
}

float row_max(const float* row, std::int64_t n) {
  Floats most = at(row);
  for (std::int64_t i = kLanes; i < n; i += kLanes) {
    const Floats x = at(row + i);
    most = x > most ? x : most;
  }
  float result = most[0];
  for (int lane = 1; lane < kLanes; ++lane) result = most[lane] > result ? most[lane] : result;
  return result;
}

/// exp(x) for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, and e^r by its Taylor polynomial of degree 7, whose
/// remainder (ln 2 / 2)^8 / 8! = 5e-9 is below the rounding of binary32. Exactly 1 at 0.
Floats exp_vector(Floats x) {
  constexpr float kRounder = 12582912.0F;     // 1.5 * 2^23: the sum's low bits hold the nearest whole number
  constexpr float kLn2High = 0.693359375F;    // 355 / 512, so that n times it is exact
  constexpr float kLn2Low = -2.12194440e-4F;  // ln 2 - kLn2High
  constexpr float kSmallest = -87.33654F;     // ln of the smallest normal number
  const Floats shifted = x * 1.44269504F + kRounder;
  const Floats n = shifted - kRounder;
  const Floats r = (x - n * kLn2High) - n * kLn2Low;
  Floats tail = r * (1.0F / 5040) + 1.0F / 720;
  tail = tail * r + 1.0F / 120;
  tail = tail * r + 1.0F / 24;
  tail = tail * r + 1.0F / 6;
  tail = tail * r + 0.5F;
  const Floats power = (tail * r) * r + r + 1.0F;
  const Ints exponent =
      (reinterpret_cast<const Ints&>(shifted) << 23) + (127 << 23);  // the rounder's own bits are shifted out
  const Floats result = power * reinterpret_cast<const Floats&>(exponent);
  return x < kSmallest ? Floats{} : result;
}

float exp_row(float* row, std::int64_t n, float shift) {
  Floats sums{};
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const Floats p = exp_vector(at(row + i) - shift);
    at(row + i) = p;
    sums += p;
  }
  float sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  return sum;
}

std::int64_t count_nonfinite(const float* values, std::int64_t n) {
  constexpr std::int32_t kExponent = 0x7f800000;
  std::int64_t count = 0;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Ints bits = *reinterpret_cast<const UnalignedInts*>(values + i);
    const Ints found = (bits & kExponent) == kExponent;  // -1 where it holds
    std::int32_t any = 0;
    for (int lane = 0; lane < kLanes; ++lane) any -= found[lane];
    count += any;
  }
  for (; i < n; ++i) {
    std::int32_t bits = 0;
    __builtin_memcpy(&bits, values + i, sizeof bits);
    count += (bits & kExponent) == kExponent ? 1 : 0;
  }
  return count;
}

}  // namespace
}  // namespace hbmscope::numerics::HBMSCOPE_KERNELS
