// These functions give the Python tests memory and streams of the fake device. The tests look up the functions by name
// in the extension module.
#include <cuda_runtime_api.h>

#include <cstddef>

extern "C" {

/// Returns new memory of the fake device, or nullptr if the allocation fails.
__attribute__((visibility("default"))) void* fake_cuda_allocate(std::size_t bytes) {
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : nullptr;
}
__attribute__((visibility("default"))) void fake_cuda_free(void* memory) { cudaFree(memory); }

/// Returns a new stream of the fake device, or nullptr if the call fails.
__attribute__((visibility("default"))) void* fake_cuda_stream() {
  cudaStream_t stream = nullptr;
  return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess ? stream : nullptr;
}
/// Enqueues a fill of the memory with `byte` on the stream.
__attribute__((visibility("default"))) void fake_cuda_fill(void* memory, int byte, std::size_t bytes, void* stream) {
  cudaMemsetAsync(memory, byte, bytes, static_cast<cudaStream_t>(stream));
}

}  // extern "C"
