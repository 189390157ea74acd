#include "cairn/cuda/internal/launcher.h"

#include "cairn/cuda/internal/error.h"

namespace cairn::cuda {

std::int64_t most_shared_bytes() {
  // What reductions keep beside, in static shared memory, and what the system reserves for itself.
  constexpr std::int64_t kReserve = 4096;
  int device = 0, bytes = 0;
  check(cudaGetDevice(&device), "the current device");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "the shared memory's size");
  return bytes - kReserve;
}

void Launcher::fill(void* address, int byte, std::int64_t bytes) const {
  if (bytes == 0) return;
  check(cudaMemsetAsync(address, byte, static_cast<std::size_t>(bytes), stream_), "filling memory");
}

}  // namespace cairn::cuda
