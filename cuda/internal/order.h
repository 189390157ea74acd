#pragma once

#include "cairn/solvers/order/device/caduceus_batch.h"
#include "cairn/solvers/order/device/key_orders.h"
#include "cairn/solvers/order/device/pumpkin.h"

/// solvers/order/device on the GPU.
namespace cairn::cuda {

solvers::PumpkinAnswer solve_pumpkin(const solvers::PumpkinProblem& problem, const solvers::PumpkinOptions& options);
solvers::KeyOrdersFound search_key_orders(const solvers::KeyTree& tree, const solvers::KeyOrderOptions& options);
solvers::CaduceusAnswers solve_caduceus(const solvers::CaduceusBatch& batch, solvers::CaduceusGoal goal);

}  // namespace cairn::cuda
