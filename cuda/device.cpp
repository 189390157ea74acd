#include "cairn/cuda/device.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "cairn/core/error.h"
#include "cairn/cuda/internal/error.h"
#include "cairn/cuda/internal/machine.h"
#include "cairn/runtime/device/dispatch.h"

namespace cairn::cuda {
namespace {

DeviceInfo require_device() {
  Probe found = probe();
  if (!found.available) throw core::DeviceError(found.reason);
  check(cudaSetDevice(0), "choosing the device");  // the one that was probed
  return std::move(*found.device);
}

}  // namespace

struct Device::State {
  explicit State(const Options& options) : info(require_device()), machine(options.workspace_limit_bytes) {}
  DeviceInfo info;
  Machine machine;
};

Device::Device(const Options& options) : state_(std::make_unique<State>(options)) {}
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;
Device::~Device() = default;

const DeviceInfo& Device::info() const { return state_->info; }
Machine& Device::machine() { return state_->machine; }

std::int64_t Device::free_bytes() const {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "the device's free memory");
  return static_cast<std::int64_t>(free);
}

std::string Device::convolutions() const {
  const Convolutions& library = state_->machine.convolutions();
  return library.available() ? "cuDNN" : "im2col, as " + library.why_not();
}

std::int64_t Device::scratch_bytes(const core::Graph& graph, core::NodeId v, bool tf32) {
  return runtime::device::scratch_bytes(state_->machine, graph, v, tf32);
}

core::Graph Device::with_scratch(const core::Graph& graph, bool tf32) {
  return runtime::device::with_scratch(state_->machine, graph, tf32);
}

}  // namespace cairn::cuda
