#include <cstdio>

#include "cairn/cuda/device.h"

/// The host compiler alone links the CUDA part and asks it for a device.
int main() {
  const cairn::cuda::Probe probe = cairn::cuda::probe();
  std::printf("device: %s\n", probe.available ? probe.device->name.c_str() : probe.reason.c_str());
  return probe.available == probe.reason.empty() ? 0 : 1;
}
