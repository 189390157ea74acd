#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/order/internal/dominant.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// Largest number of steps for which the search begins. Its tables, of some steps^2 bits each, would otherwise cost
/// more than it could find.
inline constexpr StepId kMostExactSteps = 4096;

struct ExactOptions {
  std::int64_t memory_bytes = std::int64_t{1} << 30;  ///< most bytes of states; the search ends when they are used up
  /// Peak of the order that the caller has, in bytes. Orders above it are of no use, which allows more pruning.
  std::int64_t upper_bound = std::numeric_limits<std::int64_t>::max();
};

struct ExactResult {
  std::vector<StepId> order;     ///< order of the steps of to \ from; empty if none at or below upper_bound is known
  std::int64_t peak = 0;         ///< peak of `order`
  std::int64_t lower_bound = 0;  ///< proved lower bound of the peak of every order of to \ from
  bool proved = false;           ///< whether `order` is optimal, or no order has a peak at or below upper_bound
  std::int64_t states = 0;       ///< number of cuts visited
};

/// Finds an order of the steps of to \ from with the least peak, by bottleneck search over the lattice of topological
/// cuts, with hashed states. Splits at a minimum cut first (an optimal order passes through it: Lemma 3.13), shrinks
/// both parts by rules that keep the least peak (among them: chains become segments), and searches each from both ends
/// in turns. When a cut can be reached without exceeding the peak so far and has no more memory than any cut on the
/// way, the search goes there at once and drops all other ways from there. Stops at a proof, when `watch` expires, or
/// at the memory limit: the order is then the greedy completion of the search, with the proved bound. Deterministic for
/// a work limit. Exponential in the width.
ExactResult exact_order(const StepGraph& graph, const Cut& from, const Cut& to, const ExactOptions& options,
                        core::Stopwatch& watch);
ExactResult exact_order(const StepGraph& graph, const ExactOptions& options, core::Stopwatch& watch);

/// Makes the exact search the oracle of find_schedule; the oracle gives up if the search ends without a proof.
PeakOracle exact_oracle(const ExactOptions& options, core::Stopwatch& watch);

/// Runs the exact search on all steps, for an order below the incumbent's peak. If it finds one, calls found() with it.
/// Then raises the incumbent's lower bound.
void exact_search(const StepGraph& steps, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch,
                  const std::function<void(const std::vector<StepId>&)>& found);
/// Runs the exact search on the whole graph, for an order below the incumbent's peak, which it offers to the incumbent.
/// Then raises the incumbent's lower bound.
void exact_search(const core::Graph& graph, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch);

}  // namespace cairn::solvers
