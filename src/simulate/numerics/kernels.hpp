#pragma once
#include <cstdint>

namespace hbmscope::numerics {

/// Columns of one panel. Right-hand matrices are stored panel by panel, [columns / 16][depth][16], so that a product
/// reads them in order.
inline constexpr std::int64_t kPanel = 16;

/// C [rows, 16 * panels] = A [rows, depth] B, or C += A B. Every element is summed in ascending depth, one multiply-add
/// at a time, so a row's result does not depend on the rows and columns computed beside it.
template <class T>
struct Product {
  const T* a;
  std::int64_t a_stride;      ///< between rows, in elements
  const float* b;             ///< 64-byte aligned
  std::int64_t panel_stride;  ///< between panels of B, in elements
  T* c;                       ///< 64-byte aligned rows
  std::int64_t c_stride;      ///< between rows, in elements
  std::int64_t rows;
  std::int64_t panels;
  std::int64_t depth;
  bool accumulate;  ///< add to C instead of replacing it
};

/// The inner loops of all engines for one instruction set. Rows of these functions are 64-byte aligned and n is a
/// multiple of 16 unless said otherwise.
struct Kernels {
  const char* name;
  void (*multiply)(const Product<float>&);
  void (*multiply_fp64)(const Product<double>&);
  void (*scale_row)(float* row, std::int64_t n, float factor);
  float (*row_max)(const float* row, std::int64_t n);
  /// row <- exp(row - shift), for row <= shift; returns the sum. Relative error below 2e-7; results under the smallest
  /// normal number become 0.
  float (*exp_row)(float* row, std::int64_t n, float shift);
  /// Infinities and NaN among any n values, at any address.
  std::int64_t (*count_nonfinite)(const float* values, std::int64_t n);
};

extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace hbmscope::numerics
