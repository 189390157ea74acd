#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "cairn/core/error.h"

namespace cairn::cuda {

/// Throws DeviceError "<what>: <CUDA's own words>" unless `status` is success; no error is left behind for the next
/// cudaGetLastError.
inline void check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw core::DeviceError(std::string(what) + ": " + cudaGetErrorString(status));
}

}  // namespace cairn::cuda
