#pragma once

#include <memory>

#include "cairn/solvers/common/accelerator.h"

namespace cairn::cuda {

/// The first visible GPU, for solvers (solvers::SolveOptions::accelerator). Throws DeviceError with the probe's reason
/// where there is none.
std::shared_ptr<solvers::Accelerator> make_accelerator();

}  // namespace cairn::cuda
