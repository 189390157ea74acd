#include "cairn/cuda/internal/kernel_image.h"

namespace cairn::cuda {
namespace {

__global__ void empty_kernel() {}

}  // namespace

cudaError_t kernel_image_status() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, empty_kernel);
}

}  // namespace cairn::cuda
