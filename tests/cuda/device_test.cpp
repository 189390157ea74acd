#include "cairn/cuda/device.h"

#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"

namespace cairn::tests::device_test {

using cuda::Probe;
using cuda::probe;

TEST_CASE("the probe gives a device or one line that says why not") {
  const Probe result = probe();
  CHECK(result.available == result.device.has_value());
  CHECK(result.available == result.reason.empty());
  CHECK(result.reason.find('\n') == std::string::npos);
}

// ctest runs this test with CUDA_VISIBLE_DEVICES=-1. So no device is visible, even on a machine with a GPU.
TEST_CASE("the probe says why when no device is visible", "[.][no_device]") {
  const Probe result = probe();
  REQUIRE_FALSE(result.available);
  INFO(result.reason);
  const bool names_the_cause =
      result.reason.find("driver") != std::string::npos || result.reason.find("no CUDA device") != std::string::npos;
  CHECK(names_the_cause);
}

TEST_CASE("the device has a name, memory and multiprocessors") {
  if (no_device()) return;
  const cuda::DeviceInfo device = *probe().device;
  CHECK_FALSE(device.name.empty());
  CHECK(device.free_bytes > 0);
  CHECK(device.free_bytes <= device.total_bytes);
  CHECK(device.sm_major >= 8);
  CHECK(device.multiprocessors > 0);
}

}  // namespace cairn::tests::device_test
