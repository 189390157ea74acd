#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/kernels/shape.h"

namespace cairn::runtime::device {
template void shape(Launcher<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
