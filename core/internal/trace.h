#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/profile.h"

namespace cairn::core {

/// For every step, the last step that reads its occurrence (itself, if none does; the number of steps for the last
/// occurrence of a kept node). Stops at the first defect. O(T + n + sum of in-degrees); the vectors are work space.
Defect trace_last_reads(const GraphView& graph, std::span<const NodeId> steps, std::vector<std::int32_t>& latest,
                        std::vector<std::int32_t>& last_read);

}  // namespace cairn::core
