#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/profile.h"

namespace cairn::core {

/// For every slot (an output of a step, in the order of steps, then outputs: where nodes have one output, a slot is a
/// step), the last step that reads it: its own, if none does, the number of steps for the last occurrence of a kept
/// one. `latest`: of each node, the first slot of its latest occurrence, -1 for none. Stops at the first defect. O(T +
/// n + sum of in-degrees and outputs); the vectors are work space. Throws InputError on 2^31 - 1 slots or more.
Defect trace_last_reads(const GraphView& graph, std::span<const NodeId> steps, std::vector<std::int32_t>& latest,
                        std::vector<std::int32_t>& last_read);

}  // namespace cairn::core
