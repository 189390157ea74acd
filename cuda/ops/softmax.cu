#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/softmax.h"

namespace cairn::runtime::device {
template void softmax(cuda::Machine&, Call&);
template void softmax(Sizing<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
