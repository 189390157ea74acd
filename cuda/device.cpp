#include "cairn/cuda/device.h"

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/cuda/internal/libraries.h"
#include "cairn/cuda/internal/machine.h"
#include "cairn/runtime/device/ops.h"

namespace cairn::cuda {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string driver_reason() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "no NVIDIA driver is installed";
  return "the NVIDIA driver supports CUDA " + version_text(driver) + " and this build needs " +
         version_text(CUDART_VERSION) + ": update the driver";
}

std::string reason_for(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
      return driver_reason();
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return std::string("the NVIDIA driver does not fit this build: ") + cudaGetErrorString(error) +
             "; update the driver";
    case cudaErrorDevicesUnavailable:
      return "another process holds the device for itself, or it is in a mode that allows no computation";
    case cudaErrorNoDevice:
      return "no CUDA device is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES";
    default:
      return std::string("CUDA does not start: ") + cudaGetErrorString(error);
  }
}

Probe unavailable(std::string reason) {
  cudaGetLastError();  // clears the error, which the next launch would report otherwise
  return {false, std::move(reason), std::nullopt};
}

}  // namespace

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();  // clears the error, which the next launch would report otherwise
  return 0;
}

DeviceInfo require_device(int ordinal) {
  Probe found = probe(ordinal);
  if (!found.available) throw core::DeviceError(found.reason);
  return std::move(*found.device);
}

Probe probe(int ordinal) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) return unavailable(reason_for(error));
  if (count == 0) return unavailable(reason_for(cudaErrorNoDevice));
  if (ordinal < 0 || ordinal >= count) {
    return unavailable("there is no device " + std::to_string(ordinal) + "; " +
                       (count == 1 ? "the only visible one has the number 0"
                                   : "the visible ones have the numbers 0 to " + std::to_string(count - 1)));
  }

  const OnDevice on(ordinal, std::nothrow);
  if (on.status() != cudaSuccess) return unavailable(reason_for(on.status()));
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal); error != cudaSuccess)
    return unavailable(reason_for(error));

  if (const cudaError_t error = kernel_image_status(); error != cudaSuccess) {
    if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction)
      return unavailable(reason_for(error));
    return unavailable(std::string(properties.name) + " has compute capability " + std::to_string(properties.major) +
                       "." + std::to_string(properties.minor) +
                       ", for which this build has no code: set CMAKE_CUDA_ARCHITECTURES and build again");
  }

  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (const cudaError_t error = cudaMemGetInfo(&free_bytes, &total_bytes); error != cudaSuccess)
    return unavailable(reason_for(error));

  DeviceInfo device;
  device.ordinal = ordinal;
  device.name = properties.name;
  device.total_bytes = static_cast<std::int64_t>(total_bytes);
  device.free_bytes = static_cast<std::int64_t>(free_bytes);
  device.sm_major = properties.major;
  device.sm_minor = properties.minor;
  device.multiprocessors = properties.multiProcessorCount;
  device.l2_bytes = properties.l2CacheSize;
  return {true, "", std::move(device)};
}

struct Device::State {
  State(DeviceInfo device, const Options& options)
      : info(std::move(device)),
        libraries({.small_bytes = options.workspace_limit_bytes, .large_bytes = options.large_workspace_limit_bytes}) {}

  DeviceInfo info;
  Libraries libraries;
  // The following two objects have no stream and execute nothing. They only serve to compute how much scratch ops need.
  Machine machine{nullptr};
  StreamLibrary library{libraries, nullptr};
};

Device::Device(const Options& options) {
  DeviceInfo device = require_device(options.ordinal);
  const OnDevice on(device.ordinal);
  state_ = std::make_unique<State>(std::move(device), options);
}
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Device::~Device() {
  if (state_ == nullptr) return;  // the object was moved from
  const OnDevice on(info().ordinal, std::nothrow);
  state_.reset();
}

const DeviceInfo& Device::info() const { return state_->info; }
Libraries& Device::libraries() { return state_->libraries; }

std::int64_t Device::free_bytes() const {
  const OnDevice on(info().ordinal);
  return state_->machine.free_bytes();
}

std::string Device::convolutions() const {
  const Convolutions& library = state_->libraries.convolutions;
  return library.available() ? "cuDNN" : "im2col, as " + library.why_not();
}

std::int64_t Device::scratch_bytes(const core::Graph& graph, core::NodeId v, bool tf32) {
  const OnDevice on(info().ordinal);
  return runtime::device::scratch_bytes(state_->machine, state_->library, graph, v, tf32);
}

std::vector<runtime::ScratchVariant> Device::scratch_variants(const core::Graph& graph, core::NodeId v, bool tf32) {
  const OnDevice on(info().ordinal);
  return runtime::device::scratch_variants(state_->machine, state_->library, graph, v, tf32);
}

core::Graph Device::with_scratch(const core::Graph& graph, bool tf32) {
  const OnDevice on(info().ordinal);
  return runtime::device::with_scratch(state_->machine, state_->library, graph, tf32);
}

}  // namespace cairn::cuda
