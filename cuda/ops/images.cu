#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/kernels/conv.h"
#include "cairn/runtime/device/kernels/pool.h"

namespace cairn::runtime::device {
template void conv(Launcher<cuda::Machine>&, Call&);
template void pool(Launcher<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
