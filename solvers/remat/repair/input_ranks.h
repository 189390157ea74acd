#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// Returns the index of each node in the input order.
std::vector<std::int32_t> input_ranks(const core::Graph& graph);

/// Sorts the steps between two first runs by rank, each node once, and leaves out the steps after the last first run:
/// the nearest schedule of OrderRule::stages if first runs keep the input order. O(T log T).
std::vector<core::NodeId> in_stages(std::vector<core::NodeId> steps, const std::vector<std::int32_t>& ranks);

}  // namespace cairn::solvers
