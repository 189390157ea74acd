#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"

namespace cairn::solvers {

/// Finds a topological cut (see Cut) of least memory among all cuts that contain `from` and are contained in `to`.
/// Among cuts of equal memory, returns the one with the most steps. Computes a maximum flow by the Boykov-Kolmogorov
/// algorithm of Boost.Graph, on the network of Jin et al. (proof of Theorem 3.17) for the steps between `from` and
/// `to`.
Cut min_memory_cut(const StepGraph& graph, const Cut& from, const Cut& to);

/// Computes a lower bound on the peak of every order of all steps, in bytes. When a step s begins, the steps that have
/// run form a cut that contains all predecessors of s, but not s itself. Memory then rises by StepGraph::Step::rise of
/// s. So the least memory of such a cut, plus this rise, is a lower bound. Returns the largest of these bounds for all
/// steps, or the memory at the end if that is larger. Computes at most one maximum flow per step, beginning with the
/// steps that promise the highest bounds. When `watch` expires, returns the highest bound so far.
std::int64_t cut_lower_bound(const StepGraph& graph, core::Stopwatch& watch);
/// Computes a lower bound in the same way for the orders of only those steps that are in `to` and not in `from`. These
/// steps run after the cut `from`. The peak includes the bytes that are in memory when the steps of `from` have run.
std::int64_t cut_lower_bound(const StepGraph& graph, const Cut& from, const Cut& to, core::Stopwatch& watch);

/// Describes a constraint on a set: if the set contains the element `first`, it must also contain the element `second`.
using Need = std::pair<std::int32_t, std::int32_t>;

/// Finds the set of least total weight among the sets that satisfy all needs. If there are several, finds the largest
/// of them. weights[i] is the weight of element i. Entry i of the result is 1 if element i is in the set, otherwise 0.
/// Computes one maximum flow. Neither the positive weights nor the absolute values of the negative weights may add up
/// to more than 2^62.
std::vector<std::uint8_t> least_closure(std::span<const std::int64_t> weights, std::span<const Need> needs);

}  // namespace cairn::solvers
