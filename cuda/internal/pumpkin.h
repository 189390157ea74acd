#pragma once

#include "cairn/solvers/order/device/pumpkin.h"

namespace cairn::cuda {

/// solvers::solve_pumpkin on the current device.
solvers::PumpkinAnswer solve_pumpkin(const solvers::PumpkinProblem& problem, const solvers::PumpkinOptions& options);

}  // namespace cairn::cuda
