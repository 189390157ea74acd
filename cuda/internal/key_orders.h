#pragma once

#include "cairn/solvers/order/device/caduceus_batch.h"
#include "cairn/solvers/order/device/key_orders.h"

namespace cairn::cuda {

/// solvers::search_key_orders on the current device.
solvers::KeyOrdersFound search_key_orders(const solvers::KeyTree& tree, const solvers::KeyOrderOptions& options);

/// solvers::solve_caduceus on the current device.
solvers::CaduceusAnswers solve_caduceus(const solvers::CaduceusBatch& batch, solvers::CaduceusGoal goal);

}  // namespace cairn::cuda
