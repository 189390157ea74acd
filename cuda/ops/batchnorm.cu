#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/batchnorm.h"

namespace cairn::runtime::device {
template void batchnorm(cuda::Machine&, Call&);
template void batchnorm(Sizing<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
