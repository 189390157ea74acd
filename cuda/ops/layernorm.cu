#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/layernorm.h"

namespace cairn::runtime::device {
template void layernorm(cuda::Machine&, Call&);
template void layernorm(Sizing<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
