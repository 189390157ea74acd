#pragma once

#include <cstdio>
#include <cstdlib>

#include "cairn/cuda/device.h"
#include "cairn/tests/catch.h"

namespace cairn::tests {

/// First line of a test case that needs a device: `if (no_device()) return;`. Prints a message that ctest counts as a
/// skip. Where a device is required (CAIRN_REQUIRE_DEVICE is set), its absence is a failure.
inline bool no_device() {
  const cuda::Probe probe = cuda::probe();
  if (probe.available) return false;
  if (std::getenv("CAIRN_REQUIRE_DEVICE") != nullptr) FAIL("a CUDA device is required, but " << probe.reason);
  std::printf("skipped: no CUDA device (%s)\n", probe.reason.c_str());
  return true;
}

}  // namespace cairn::tests
