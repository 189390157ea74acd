#pragma once

#include <memory>

#include "cairn/solvers/common/accelerator.h"

namespace cairn::cuda {

/// Returns the visible GPU with that ordinal, for solvers (solvers::SolveOptions::accelerator). Throws DeviceError with
/// the probe's reason if there is none.
std::shared_ptr<solvers::Accelerator> make_accelerator(int ordinal = 0);

}  // namespace cairn::cuda
