#include "cairn/cuda/internal/machine.cuh"
#include "cairn/runtime/device/kernels/batchnorm.h"
#include "cairn/runtime/device/kernels/elementwise.h"
#include "cairn/runtime/device/kernels/embedding.h"
#include "cairn/runtime/device/kernels/matmul.h"
#include "cairn/runtime/device/kernels/update.h"

namespace cairn::runtime::device {
template void batchnorm(Launcher<cuda::Machine>&, Call&);
template void elementwise(Launcher<cuda::Machine>&, Call&);
template void embedding(Launcher<cuda::Machine>&, Call&);
template void matmul(Launcher<cuda::Machine>&, Call&);
template void update(Launcher<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
