#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/elementwise.h"

namespace cairn::runtime::device {
template void elementwise(cuda::Machine&, Call&);
template void elementwise(Sizing<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
