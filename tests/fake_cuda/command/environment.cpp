// Sets properties of the fake device of the program cairn_fake_cuda, from environment variables that the tests set.
#include <cstdint>
#include <cstdlib>

#include "cairn/tests/fake_cuda/fake_cuda.h"

namespace {

std::int64_t number(const char* variable, std::int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

const bool kPrepared = [] {
  namespace fake = cairn::tests::fake;
  fake::set_device_bytes(number("FAKE_CUDA_BYTES", fake::kDeviceBytes));
  fake::set_device_count(static_cast<int>(number("FAKE_CUDA_DEVICES", 1)));
  fake::set_driver_version(static_cast<int>(number("FAKE_CUDA_DRIVER", CUDART_VERSION)));
  fake::set_cudnn(number("FAKE_CUDA_CUDNN", 0) != 0);
  if (const std::int64_t nth = number("FAKE_CUDA_FAILING_KERNEL", 0); nth > 0) fake::fail_kernel(nth);
  // Makes the first call of the CUDA function named by FAKE_CUDA_FAILING_CALL fail with the error code FAKE_CUDA_ERROR.
  if (const char* function = std::getenv("FAKE_CUDA_FAILING_CALL")) {
    fake::fail_call(function, 1, static_cast<cudaError_t>(number("FAKE_CUDA_ERROR", cudaErrorUnknown)));
  }
  return true;
}();

}  // namespace
