#include <cstdio>

#include "cairn/cuda/device.h"

/// Tests that a host compiler without nvcc can build a program which uses Cairn's CUDA part. The program looks for a
/// device.
int main() {
  const cairn::cuda::Probe probe = cairn::cuda::probe();
  std::printf("device: %s\n", probe.available ? probe.device->name.c_str() : probe.reason.c_str());
  return probe.available == probe.reason.empty() ? 0 : 1;
}
