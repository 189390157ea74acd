#pragma once

#include "cairn/solvers/order/device/pumpkin.h"

namespace cairn::cuda {

/// sim::solve_pumpkin on the current device.
sim::PumpkinAnswer solve_pumpkin(const sim::PumpkinProblem& problem, const sim::PumpkinOptions& options);

}  // namespace cairn::cuda
