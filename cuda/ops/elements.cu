#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/batchnorm.h"
#include "cairn/runtime/device/elementwise.h"
#include "cairn/runtime/device/embedding.h"
#include "cairn/runtime/device/matmul.h"
#include "cairn/runtime/device/update.h"

namespace cairn::runtime::device {
template void batchnorm(Launcher<cuda::Machine>&, Call&);
template void elementwise(Launcher<cuda::Machine>&, Call&);
template void embedding(Launcher<cuda::Machine>&, Call&);
template void matmul(Launcher<cuda::Machine>&, Call&);
template void update(Launcher<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
