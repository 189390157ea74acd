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

/// Largest number of steps for which the search starts. For more steps its tables, of about steps^2 bits each, would
/// cost more than the search could gain.
inline constexpr StepId kMostExactSteps = 4096;

struct ExactOptions {
  /// Largest number of bytes of states; the search ends when they are used up.
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  /// Peak of the order that the caller has, in bytes. Orders with a higher peak are of no use to the caller, so the
  /// search leaves them out.
  std::int64_t upper_bound = std::numeric_limits<std::int64_t>::max();
};

struct ExactResult {
  std::vector<StepId> order;     ///< order of the steps of to \ from; empty if none at or below upper_bound is known
  std::int64_t peak = 0;         ///< peak of `order`
  std::int64_t lower_bound = 0;  ///< proved lower bound on the peak of every order of to \ from
  bool proved = false;           ///< whether `order` is optimal, or no order has a peak at or below upper_bound
  std::int64_t states = 0;       ///< number of cuts visited
};

/// Finds an order of the steps of to \ from with the least peak, by bottleneck search over the lattice of topological
/// cuts, with hashed states (cut_search.h). First splits the problem at a minimum cut; some optimal order passes
/// through that cut (Lemma 3.13). Then shrinks both parts by rules that keep the least peak, for example by replacing
/// chains by segments. Searches each part from both ends in turns.
///
/// Stops at a proof, when `watch` expires, or at the memory limit. Without a proof, the order is completed greedily,
/// and lower_bound is what was proved. Deterministic for a work limit. Exponential in the width of the graph.
ExactResult exact_order(const StepGraph& graph, const Cut& from, const Cut& to, const ExactOptions& options,
                        core::Stopwatch& watch);
ExactResult exact_order(const StepGraph& graph, const ExactOptions& options, core::Stopwatch& watch);

/// Makes the exact search an oracle for find_schedule(). The oracle gives up if the search ends without a proof.
PeakOracle exact_oracle(const ExactOptions& options, core::Stopwatch& watch);

/// Runs the exact search on all steps, for an order below the incumbent's peak. Calls found() with such an order if
/// there is one. Then raises the incumbent's lower bound.
void exact_search(const StepGraph& steps, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch,
                  const std::function<void(const std::vector<StepId>&)>& found);
/// Runs the exact search on the whole graph, for an order below the incumbent's peak. Offers such an order to the
/// incumbent. Then raises the incumbent's lower bound.
void exact_search(const core::Graph& graph, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch);

}  // namespace cairn::solvers
