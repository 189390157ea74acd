#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/profile.h"

namespace cairn::core {

/// Finds the last step that reads each slot. A slot is an output of a step; slots are ordered by step, then output. If
/// nothing reads a slot, its own step is taken; for the last occurrence of a kept output, the number of steps is.
/// `latest` becomes, for each node, the first slot of its latest occurrence, or -1 if there is none. Stops at the first
/// defect. O(T + n + sum of in-degrees and outputs); the vectors are work space. Throws InputError on 2^31 - 1 slots or
/// more.
Defect trace_last_reads(const GraphView& graph, std::span<const NodeId> steps, std::vector<std::int32_t>& latest,
                        std::vector<std::int32_t>& last_read);

}  // namespace cairn::core
