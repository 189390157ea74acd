#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/kernels/layernorm.h"
#include "cairn/runtime/device/kernels/loss.h"
#include "cairn/runtime/device/kernels/softmax.h"

namespace cairn::runtime::device {
template void layernorm(Launcher<cuda::Machine>&, Call&);
template void loss(Launcher<cuda::Machine>&, Call&);
template void softmax(Launcher<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
