#pragma once

#include <cstdio>
#include <cstdlib>

#include "cairn/cuda/device.h"
#include "cairn/tests/catch.h"

namespace cairn::tests {

/// Returns whether there is no device. If so, prints a message that makes ctest count the test as skipped, or fails if
/// CAIRN_REQUIRE_DEVICE is set. A test that needs a device begins with `if (no_device()) return;`.
inline bool no_device() {
  const cuda::Probe probe = cuda::probe();
  if (probe.available) return false;
  if (std::getenv("CAIRN_REQUIRE_DEVICE") != nullptr) FAIL("a CUDA device is required, but " << probe.reason);
  std::printf("skipped: no CUDA device (%s)\n", probe.reason.c_str());
  return true;
}

}  // namespace cairn::tests
