#pragma once

#include "cairn/solvers/order/device/key_orders.h"
#include "cairn/solvers/order/device/pumpkin.h"

/// These functions run the searches of solvers/order/device on a GPU: the one with the index `ordinal` among the
/// visible GPUs.
namespace cairn::cuda {

solvers::PumpkinAnswer solve_pumpkin(const solvers::PumpkinProblem& problem, const solvers::PumpkinOptions& options,
                                     int ordinal);
solvers::KeyOrdersFound search_key_orders(const solvers::KeyTree& tree, const solvers::KeyOrderOptions& options,
                                          int ordinal);

}  // namespace cairn::cuda
