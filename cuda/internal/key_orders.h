#pragma once

#include "cairn/solvers/order/device/caduceus_batch.h"
#include "cairn/solvers/order/device/key_orders.h"

namespace cairn::cuda {

/// sim::search_key_orders on the current device.
sim::KeyOrdersFound search_key_orders(const sim::KeyTree& tree, const sim::KeyOrderOptions& options);

/// sim::solve_caduceus on the current device.
sim::CaduceusAnswers solve_caduceus(const sim::CaduceusBatch& batch, sim::CaduceusGoal goal);

}  // namespace cairn::cuda
