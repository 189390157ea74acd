#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/order/internal/chains/dominant.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"

namespace cairn::solvers {

/// Largest number of steps for which exact_order() searches. The tables of the search have about steps^2 bits each, so
/// more steps would take too long.
inline constexpr StepId kMostExactSteps = 4096;

struct ExactOptions {
  /// The search ends when its states have used up this number of bytes.
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  /// The search ignores orders with a peak above this number of bytes, because they are of no use to the caller.
  std::int64_t upper_bound = std::numeric_limits<std::int64_t>::max();
};

struct ExactResult {
  /// Order of the steps that exact_order() was asked to order. Empty if no order with a peak of at most upper_bound was
  /// found.
  std::vector<StepId> order;
  std::int64_t peak = 0;
  std::int64_t lower_bound = 0;  ///< proved lower bound on the peak of every order of these steps, in bytes
  /// Whether it is proved that no order has a lower peak than `order` or, if `order` is empty, that every order has a
  /// peak above upper_bound.
  bool proved = false;
  std::int64_t states = 0;
};

/// Finds an order of least peak of the steps in `to` that are not in `from`. A cut is a set of steps that contains all
/// predecessors of its steps; its memory is the bytes in use when its steps have run. First divides the problem at a
/// cut of least memory, because some order of least peak passes through this cut (Lemma 3.13 of Jin et al.). Shrinks
/// both parts by rules that keep the least peak (exchange_rules.h). Finally searches the cuts of each part
/// (cut_search.h), in turn from its beginning and from its end.
///
/// Ends when the least peak is proved, when `watch` expires, or when options.memory_bytes are used up. Without a proof,
/// the order is completed greedily, and lower_bound is the bound proved so far. Deterministic for a work limit. Takes
/// time exponential in the width of the graph, i.e. the largest number of steps of which none must run before another.
ExactResult exact_order(const StepGraph& graph, const Cut& from, const Cut& to, const ExactOptions& options,
                        core::Stopwatch& watch);
/// Orders all steps of the graph.
ExactResult exact_order(const StepGraph& graph, const ExactOptions& options, core::Stopwatch& watch);

/// Returns an oracle for find_schedule() that calls exact_order(). The oracle gives up if the search ends without a
/// proof.
PeakOracle exact_oracle(const ExactOptions& options, core::Stopwatch& watch);

/// Searches by exact_order() for an order of all steps with a peak below incumbent.least_peak(). Calls found() if it
/// finds such an order. Raises the incumbent's lower bound on the peak to the proved bound.
void exact_search(const StepGraph& steps, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch,
                  const std::function<void(const std::vector<StepId>&)>& found);
/// Searches by exact_order() for an order of all nodes with a peak below incumbent.least_peak(), and offers it to the
/// incumbent.
void exact_search(const core::Graph& graph, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch);

}  // namespace cairn::solvers
