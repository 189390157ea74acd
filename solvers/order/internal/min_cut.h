#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// Finds a topological cut of least memory among all cuts that contain `from` and lie within `to`, by maximum flow on
/// the node-sum form of the part between (the closure network of Jin et al., proof of Theorem 3.17; Boykov-Kolmogorov
/// of Boost.Graph). `from` must be contained in `to`. Among equal cuts, returns the one with the most steps: no step
/// can be added to it that leaves memory the same.
Cut min_memory_cut(const StepGraph& graph, const Cut& from, const Cut& to);

/// Computes a lower bound on the peak of any order of all steps: the maximum over steps s of rise(s) plus the least
/// memory of a cut that holds the predecessors of s and not s; also at least the memory at the end. The bound is at
/// least the largest working set. One maximum flow a step, the promising steps first; stops early once `watch` expires
/// (the value so far is a bound already).
std::int64_t cut_lower_bound(const StepGraph& graph, core::Stopwatch& watch);
/// Computes a lower bound on the peak of any order of the steps of to \ from, memory at `from` included.
std::int64_t cut_lower_bound(const StepGraph& graph, const Cut& from, const Cut& to, core::Stopwatch& watch);

/// A constraint on sets: a set that contains `first` has to contain `second` too.
using Need = std::pair<std::int32_t, std::int32_t>;

/// Finds the set of least total weight among the sets that contain everything their members need; of several, the
/// largest. 1 marks a member. One maximum flow; neither the positive nor the negative weights may add up to more than
/// 2^62.
std::vector<std::uint8_t> least_closure(std::span<const std::int64_t> weights, std::span<const Need> needs);

}  // namespace cairn::solvers
