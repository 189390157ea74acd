#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// Returns the rank of each node, which is its index in the input order. Indexed by node.
std::vector<std::int32_t> input_ranks(const core::Graph& graph);

/// Turns a schedule into stages. A stage is the part of a schedule between the first run of one node and the next first
/// run of another node. Sorts the steps of each stage by rank (see input_ranks()), keeps each node once in a stage, and
/// removes the steps after the last first run. If the first runs are in the input order, the result follows
/// OrderRule::stages. O(T log T) for T steps.
std::vector<core::NodeId> in_stages(std::vector<core::NodeId> steps, const std::vector<std::int32_t>& ranks);

}  // namespace cairn::solvers
