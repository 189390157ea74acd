#pragma once

#include <memory>

#include "cairn/solvers/common/support/accelerator.h"

namespace cairn::cuda {

/// Returns an object with which solvers run searches on the visible GPU with the index `ordinal`
/// (solvers::SolveOptions::accelerator). Throws DeviceError, which says why, if Cairn cannot use this GPU.
std::shared_ptr<solvers::Accelerator> make_accelerator(int ordinal = 0);

}  // namespace cairn::cuda
