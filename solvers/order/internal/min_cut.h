#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// A topological cut of least memory among those that hold `from` and lie within `to` (both cuts, from within to): by
/// maximum flow on the node-sum form of what lies between (the closure network of Jin et al., proof of Theorem 3.17;
/// Boykov-Kolmogorov of Boost.Graph). Among equals the one with the most steps: no step can be added to it that
/// leaves memory the same.
Cut min_memory_cut(const StepGraph& graph, const Cut& from, const Cut& to);

/// A bound that no order of all steps can beat: the greatest over steps s of the least memory over all cuts that hold
/// the predecessors of s and not s, plus rise(s); and the memory at the end. At least the largest working set. One
/// maximum flow a step, the promising ones first; stops early once `watch` expires (what it has is a bound already).
std::int64_t cut_lower_bound(const StepGraph& graph, core::Stopwatch& watch);
/// The same for orders of to \ from, memory at `from` included.
std::int64_t cut_lower_bound(const StepGraph& graph, const Cut& from, const Cut& to, core::Stopwatch& watch);

/// first needs second: whoever holds the first holds the second too.
using Need = std::pair<std::int32_t, std::int32_t>;

/// Among the sets that hold all that their members need, the largest of least total weight: 1 for each member. One
/// maximum flow; neither the positive nor the negative weights may add up to more than 2^62.
std::vector<std::uint8_t> least_closure(std::span<const std::int64_t> weights, std::span<const Need> needs);

}  // namespace cairn::solvers
