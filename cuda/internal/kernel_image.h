#pragma once

#include <cuda_runtime_api.h>

namespace cairn::cuda {

/// Whether this build has code for the current device: cudaErrorNoKernelImageForDevice or
/// cudaErrorInvalidDeviceFunction where it has none.
cudaError_t kernel_image_status();

}  // namespace cairn::cuda
