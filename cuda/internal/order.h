#pragma once

#include "cairn/solvers/order/device/key_orders.h"
#include "cairn/solvers/order/device/pumpkin.h"

/// Runs the algorithms of solvers/order/device on the GPU.
namespace cairn::cuda {

solvers::PumpkinAnswer solve_pumpkin(const solvers::PumpkinProblem& problem, const solvers::PumpkinOptions& options);
solvers::KeyOrdersFound search_key_orders(const solvers::KeyTree& tree, const solvers::KeyOrderOptions& options);

}  // namespace cairn::cuda
