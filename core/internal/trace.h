#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/profile.h"

namespace cairn::core {

/// For each slot of a schedule, finds the last step that reads it. A slot is one output of one step. Slots are ordered
/// by step, then by output. If nothing reads a slot, its entry of `last_read` is the slot's own step. For the last
/// occurrence of a kept output, the entry is the number of steps. For each node, sets `latest` to the first slot of the
/// node's latest occurrence, or to -1 if the node did not run. Stops at the first defect of the schedule and returns
/// it. Callers may reuse the vectors to avoid allocations. Throws InputError if there are 2^31 - 1 slots or more.
/// O(nodes + steps + inputs and outputs of all steps).
Defect trace_last_reads(const GraphView& graph, std::span<const NodeId> steps, std::vector<std::int32_t>& latest,
                        std::vector<std::int32_t>& last_read);

}  // namespace cairn::core
