#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// Finds a topological cut of least memory among all cuts that contain `from` and lie within `to`. `to` must contain
/// `from`. Among cuts of equal memory, returns the one with the most steps, so that every larger cut has more memory.
/// Computes a maximum flow by the Boykov-Kolmogorov algorithm of Boost.Graph. The network is the closure network of Jin
/// et al. (proof of Theorem 3.17) for the part between `from` and `to` in node-sum form.
Cut min_memory_cut(const StepGraph& graph, const Cut& from, const Cut& to);

/// Computes a lower bound on the peak of any order of all steps. For each step s, rise(s) plus the least memory of a
/// cut that contains the predecessors of s but not s is a lower bound. So is the memory at the end. Returns the largest
/// of these bounds, which is at least the largest working set. Computes one maximum flow per step, for promising steps
/// first. When `watch` expires, returns the largest bound so far.
std::int64_t cut_lower_bound(const StepGraph& graph, core::Stopwatch& watch);
/// Computes a lower bound on the peak of any order of the steps in to \ from. The peak includes the memory at `from`.
std::int64_t cut_lower_bound(const StepGraph& graph, const Cut& from, const Cut& to, core::Stopwatch& watch);

/// A constraint on sets. A set that contains `first` has to contain `second` too.
using Need = std::pair<std::int32_t, std::int32_t>;

/// Finds the set of least total weight among the sets that satisfy all needs. If there are several such sets, returns
/// the largest. Element i of the result is 1 if i is in the set. Computes one maximum flow. The positive weights may
/// add up to at most 2^62, and so may the absolute values of the negative weights.
std::vector<std::uint8_t> least_closure(std::span<const std::int64_t> weights, std::span<const Need> needs);

}  // namespace cairn::solvers
