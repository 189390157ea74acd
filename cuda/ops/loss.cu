#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/loss.h"

namespace cairn::runtime::device {
template void loss(cuda::Machine&, Call&);
template void loss(Sizing<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
