#include "cairn/cuda/support/accelerator.h"

#include <string>
#include <utility>

#include "cairn/cuda/device.h"
#include "cairn/cuda/internal/order.h"
#include "cairn/solvers/common/support/accelerator.h"

namespace cairn::cuda {
namespace {

class CudaAccelerator : public solvers::Accelerator {
 public:
  explicit CudaAccelerator(DeviceInfo device) : device_(std::move(device)) {}

  std::string device() const override { return device_.name; }
  solvers::PumpkinAnswer pumpkin(const solvers::PumpkinProblem& problem,
                                 const solvers::PumpkinOptions& options) override {
    return solve_pumpkin(problem, options, device_.ordinal);
  }
  solvers::KeyOrdersFound key_orders(const solvers::KeyTree& tree, const solvers::KeyOrderOptions& options) override {
    return search_key_orders(tree, options, device_.ordinal);
  }

 private:
  DeviceInfo device_;
};

}  // namespace

std::shared_ptr<solvers::Accelerator> make_accelerator(int ordinal) {
  return std::make_shared<CudaAccelerator>(require_device(ordinal));
}

}  // namespace cairn::cuda
