#if defined(__x86_64__)
#define HBMSCOPE_KERNELS avx2
#define HBMSCOPE_VECTOR_BYTES 32
#include "simulate/numerics/kernels_impl.hpp"

namespace hbmscope::numerics {

const Kernels kAvx2Kernels{"avx2",        avx2::multiply<float>, avx2::multiply<double>, avx2::scale_row,
                           avx2::row_max, avx2::exp_row,         avx2::count_nonfinite};

}  // namespace hbmscope::numerics
#endif
