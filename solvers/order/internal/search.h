#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

struct OrderSearchOptions {
  std::uint64_t seed = 0;
  std::int64_t lower_bound = 0;  ///< bytes of peak; an order with this peak ends the search
  /// Called on the caller's thread with every order that is better than all earlier ones, and its peak.
  std::function<void(const std::vector<StepId>&, std::int64_t peak)> found;
  /// Called at the end with the peak of the returned order if the search has proved that no order has a lower peak. A
  /// beam that is wide enough to leave out no cut proves this.
  std::function<void(std::int64_t peak)> proved;
};

/// Searches for an order of low peak until `watch` expires, the lower bound is reached or the peak is proved to be the
/// least. Beam searches of growing width over topological cuts, forward and backward, alternate with annealing that
/// moves single steps. `start`: an order to begin with; empty: any order. Returns the best order found, which is never
/// worse than `start`. Uses `threads` threads, including the caller's. Deterministic for a given number of threads,
/// seed and work limit. Memory: O(n + m) per thread, and up to a few hundred MB for wide beams.
std::vector<StepId> search_order(const StepGraph& graph, std::vector<StepId> start, const OrderSearchOptions& options,
                                 core::Stopwatch& watch, int threads = 1);

}  // namespace cairn::solvers
