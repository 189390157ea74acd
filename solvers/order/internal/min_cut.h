#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// Finds a topological cut of least memory among all cuts that contain `from` and lie within `to`. `from` must be
/// contained in `to`. Among equal cuts, returns the one with the most steps, so that every larger cut has more memory.
/// Computes a maximum flow on the node-sum form of the part between the two cuts (the closure network of Jin et al.,
/// proof of Theorem 3.17), by the Boykov-Kolmogorov algorithm of Boost.Graph.
Cut min_memory_cut(const StepGraph& graph, const Cut& from, const Cut& to);

/// Computes a lower bound on the peak of any order of all steps. For each step s this is rise(s) plus the least memory
/// of a cut that contains the predecessors of s and not s; the largest value counts, and the memory at the end if that
/// is larger. The bound is at least the largest working set. Takes one maximum flow per step, promising steps first.
/// When `watch` expires, returns the largest value so far, which is a bound as well.
std::int64_t cut_lower_bound(const StepGraph& graph, core::Stopwatch& watch);
/// Computes a lower bound on the peak of any order of the steps of to \ from. The peak includes the memory at `from`.
std::int64_t cut_lower_bound(const StepGraph& graph, const Cut& from, const Cut& to, core::Stopwatch& watch);

/// A constraint on sets: a set that contains `first` has to contain `second` too.
using Need = std::pair<std::int32_t, std::int32_t>;

/// Finds the set of least total weight among the sets that satisfy all needs. Among several such sets, returns the
/// largest. Element i of the result is 1 if i is in the set. Takes one maximum flow. Neither the positive nor the
/// negative weights may add up to more than 2^62 in absolute value.
std::vector<std::uint8_t> least_closure(std::span<const std::int64_t> weights, std::span<const Need> needs);

}  // namespace cairn::solvers
