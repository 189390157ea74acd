#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"

namespace cairn::solvers {

struct OrderSearchOptions {
  std::uint64_t seed = 0;
  std::int64_t lower_bound = 0;  ///< lower bound on the peak in bytes; an order with this peak ends the search
  /// Called on the caller's thread with each order whose peak is lower than the peaks of all earlier orders.
  std::function<void(const std::vector<StepId>&, std::int64_t peak)> found;
  /// Called at the end with the peak of the returned order, if a beam search proved that no order has a lower peak.
  std::function<void(std::int64_t peak)> proved;
};

/// Searches for an order of low peak until `watch` expires, the lower bound is reached or the peak is proved to be the
/// least. Alternates between beam searches of growing width, forwards and backwards (beam.h), and simulated annealing
/// (anneal.h). The search begins with the order `start` or, if `start` is empty, with any order. Returns the best order
/// found; its peak is never higher than the peak of the first order. Uses `threads` threads, including the caller's.
/// Deterministic for a given number of threads, seed and work limit. Takes O(n + m) memory per thread for n steps and m
/// edges, and up to a few hundred MB for wide beams.
std::vector<StepId> search_order(const StepGraph& graph, std::vector<StepId> start, const OrderSearchOptions& options,
                                 core::Stopwatch& watch, int threads = 1);

}  // namespace cairn::solvers
