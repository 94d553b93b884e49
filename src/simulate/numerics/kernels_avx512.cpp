#if defined(__x86_64__)
#define HBMSCOPE_KERNELS avx512
#define HBMSCOPE_VECTOR_BYTES 64
#include "simulate/numerics/kernels_impl.hpp"

namespace hbmscope::numerics {

const Kernels kAvx512Kernels{"avx512",        avx512::multiply<float>, avx512::multiply<double>, avx512::scale_row,
                             avx512::row_max, avx512::exp_row,         avx512::count_nonfinite};

}  // namespace hbmscope::numerics
#endif
