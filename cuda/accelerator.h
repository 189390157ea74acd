#pragma once

#include <memory>

#include "cairn/solvers/order/device/accelerator.h"

namespace cairn::cuda {

/// The first visible GPU, for solvers. Throws DeviceError with the probe's reason where there is none.
std::unique_ptr<solvers::Accelerator> make_accelerator();

}  // namespace cairn::cuda
