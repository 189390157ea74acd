#pragma once

#include <cstdio>
#include <cstdlib>

#include "cairn/cuda/device.h"
#include "cairn/tests/catch.h"

namespace cairn::tests {

/// Returns whether there is no device. In that case it prints a message from which ctest recognizes that the test was
/// skipped. If CAIRN_REQUIRE_DEVICE is set, it fails the test instead. A test that needs a device begins with `if
/// (no_device()) return;`.
inline bool no_device() {
  const cuda::Probe probe = cuda::probe();
  if (probe.available) return false;
  if (std::getenv("CAIRN_REQUIRE_DEVICE") != nullptr) FAIL("a CUDA device is required, but " << probe.reason);
  std::printf("skipped: no CUDA device (%s)\n", probe.reason.c_str());
  return true;
}

}  // namespace cairn::tests
