#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/conv.h"

namespace cairn::runtime::device {
template void conv(cuda::Machine&, Call&);
template void conv(Sizing<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
