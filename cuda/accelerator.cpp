#include "cairn/cuda/support/accelerator.h"

#include <string>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/cuda/device.h"
#include "cairn/cuda/internal/order.h"
#include "cairn/solvers/common/accelerator.h"

namespace cairn::cuda {
namespace {

class CudaAccelerator : public solvers::Accelerator {
 public:
  explicit CudaAccelerator(std::string name) : name_(std::move(name)) {}

  std::string device() const override { return name_; }
  solvers::PumpkinAnswer pumpkin(const solvers::PumpkinProblem& problem,
                                 const solvers::PumpkinOptions& options) override {
    return solve_pumpkin(problem, options);
  }
  solvers::KeyOrdersFound key_orders(const solvers::KeyTree& tree, const solvers::KeyOrderOptions& options) override {
    return search_key_orders(tree, options);
  }

 private:
  std::string name_;
};

}  // namespace

std::shared_ptr<solvers::Accelerator> make_accelerator() {
  Probe found = probe();
  if (!found.available) throw core::DeviceError(found.reason);
  return std::make_shared<CudaAccelerator>(std::move(found.device->name));
}

}  // namespace cairn::cuda
