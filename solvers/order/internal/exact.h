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

/// Above it the search does not begin: its tables, of some steps^2 bits each, would cost more than it could find.
inline constexpr StepId kMostExactSteps = 4096;

struct ExactOptions {
  std::int64_t memory_bytes = std::int64_t{1} << 30;  ///< for states; the search ends when it is used up
  /// Orders of a peak above this are of no use (the caller has one of this peak): more pruning. Bytes.
  std::int64_t upper_bound = std::numeric_limits<std::int64_t>::max();
};

struct ExactResult {
  std::vector<StepId> order;     ///< of to \ from; empty if none at or below upper_bound is known
  std::int64_t peak = 0;         ///< of `order`
  std::int64_t lower_bound = 0;  ///< proved for every order of to \ from
  bool proved = false;           ///< `order` is optimal, or none has a peak at or below upper_bound
  std::int64_t states = 0;       ///< cuts that were looked at
};

/// Orders to \ from with the least peak: bottleneck search over the lattice of topological cuts, with hashed states.
/// Splits at a minimum cut first (an optimal order passes through it: Lemma 3.13), shrinks both parts by rules that
/// keep the least peak (chains to segments among them), and searches each from both ends in turns. A cut that can be
/// reached without exceeding the peak so far, and has no more memory than any cut on the way, is gone to at once,
/// and all other ways from there are dropped. Stops at a proof, when `watch` expires, or at the memory limit: then with
/// the greedy completion of what it has and the proved bound. Deterministic for a work limit. Exponential in the width.
ExactResult exact_order(const StepGraph& graph, const Cut& from, const Cut& to, const ExactOptions& options,
                        core::Stopwatch& watch);
ExactResult exact_order(const StepGraph& graph, const ExactOptions& options, core::Stopwatch& watch);

/// The exact search as the oracle of find_schedule; gives up where the search ends without a proof.
PeakOracle exact_oracle(const ExactOptions& options, core::Stopwatch& watch);

/// The exact search on all that is to be ordered, below the incumbent's peak. Raises its lower bound, and calls found()
/// with an order that is better, if there is one, before.
void exact_search(const StepGraph& steps, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch,
                  const std::function<void(const std::vector<StepId>&)>& found);
/// The same on the whole graph: what is found is offered.
void exact_search(const core::Graph& graph, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch);

}  // namespace cairn::solvers
