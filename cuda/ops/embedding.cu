#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/embedding.h"

namespace cairn::runtime::device {
template void embedding(cuda::Machine&, Call&);
template void embedding(Sizing<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
