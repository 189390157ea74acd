#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

struct OrderSearchOptions {
  std::uint64_t seed = 0;
  std::int64_t lower_bound = 0;  ///< bytes of peak; an order that reaches them ends the search
  /// Called on the caller's thread with every order that is better than all earlier ones, and its peak.
  std::function<void(const std::vector<StepId>&, std::int64_t peak)> found;
  /// Called at the end if the search has proved that no order has a lower peak than the returned one: a beam that is
  /// wide enough never leaves out a cut.
  std::function<void(std::int64_t peak)> proved;
};

/// Looks for an order of low peak until `watch` expires, the lower bound is reached or the peak is proved least. Beams
/// of growing width over topological cuts, forward and backward, take turns with annealing by moves of single steps.
/// `start` is an order to begin with (empty: any); returns the best order, never worse than that. Uses `threads`
/// threads, including the caller's; deterministic for a given number of threads, seed and work limit. Memory: O(n + m)
/// a thread, and up to a few hundred MB for wide beams.
std::vector<StepId> search_order(const StepGraph& graph, std::vector<StepId> start, const OrderSearchOptions& options,
                                 core::Stopwatch& watch, int threads = 1);

}  // namespace cairn::solvers
