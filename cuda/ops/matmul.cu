#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/matmul.h"

namespace cairn::runtime::device {
template void matmul(cuda::Machine&, Call&);
template void matmul(Sizing<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
