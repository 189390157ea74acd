// Memory of the fake device for the Python tests, which find these functions by name in the extension module.
#include <cuda_runtime_api.h>

#include <cstddef>

extern "C" {

/// Returns memory of the device, or nullptr.
__attribute__((visibility("default"))) void* fake_cuda_allocate(std::size_t bytes) {
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : nullptr;
}
__attribute__((visibility("default"))) void fake_cuda_free(void* memory) { cudaFree(memory); }

}  // extern "C"
