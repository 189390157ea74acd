#include "cairn/cuda/accelerator.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/cuda/device.h"
#include "cairn/cuda/internal/error.h"
#include "cairn/cuda/internal/key_orders.h"
#include "cairn/cuda/internal/pumpkin.h"

namespace cairn::cuda {
namespace {

class CudaAccelerator : public solvers::Accelerator {
 public:
  explicit CudaAccelerator(std::string name) : name_(std::move(name)) {}

  std::string device() const override { return name_; }
  solvers::PumpkinAnswer pumpkin(const solvers::PumpkinProblem& problem,
                                 const solvers::PumpkinOptions& options) override {
    solvers::PumpkinOptions within = options;
    within.memory_bytes = std::min(options.memory_bytes, free_bytes());
    return solve_pumpkin(problem, within);
  }
  solvers::KeyOrdersFound key_orders(const solvers::KeyTree& tree, const solvers::KeyOrderOptions& options) override {
    return search_key_orders(tree, options);
  }

 private:
  /// But for what algorithms take for a moment, and what allocations round up.
  static std::int64_t free_bytes() {
    constexpr std::int64_t kSpared = std::int64_t{64} << 20;
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "the device's memory");
    return static_cast<std::int64_t>(free) - kSpared;
  }

  std::string name_;
};

}  // namespace

std::unique_ptr<solvers::Accelerator> make_accelerator() {
  Probe found = probe();
  if (!found.available) throw core::DeviceError(found.reason);
  check(cudaSetDevice(0), "choosing the device");  // the one that was probed
  return std::make_unique<CudaAccelerator>(std::move(found.device->name));
}

}  // namespace cairn::cuda
