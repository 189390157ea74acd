#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/pool.h"

namespace cairn::runtime::device {
template void pool(cuda::Machine&, Call&);
template void pool(Sizing<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
