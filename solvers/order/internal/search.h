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
  /// Called on the caller's thread with every order whose peak is lower than all earlier peaks, and with this peak.
  std::function<void(const std::vector<StepId>&, std::int64_t peak)> found;
  /// Called at the end with the peak of the returned order if the search has proved that no order has a lower peak. A
  /// beam search proves this if its beam was so wide that no cut had to be left out.
  std::function<void(std::int64_t peak)> proved;
};

/// Searches for an order of low peak until `watch` expires, the lower bound is reached or the peak is proved to be the
/// least. Alternates between two searches. One is beam search over topological cuts, forwards and backwards, with a
/// growing width. The other is annealing that moves single steps. `start` is an order to begin with; empty: any order.
/// Returns the best order found, which is never worse than `start`. Uses `threads` threads, including the caller's.
/// Deterministic for a given number of threads, seed and work limit. Memory: O(n + m) per thread, and up to a few
/// hundred MB for wide beams.
std::vector<StepId> search_order(const StepGraph& graph, std::vector<StepId> start, const OrderSearchOptions& options,
                                 core::Stopwatch& watch, int threads = 1);

}  // namespace cairn::solvers
