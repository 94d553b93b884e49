#define HBMSCOPE_KERNELS portable
#define HBMSCOPE_VECTOR_BYTES 16
#include "simulate/numerics/kernels_impl.hpp"

namespace hbmscope::numerics {

const Kernels kPortableKernels{
    "portable",        portable::multiply<float>, portable::multiply<double>, portable::scale_row,
    portable::row_max, portable::exp_row,         portable::count_nonfinite};

}  // namespace hbmscope::numerics
