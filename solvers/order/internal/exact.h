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

/// Largest number of steps for which the search starts. Its tables have about steps^2 bits each. For more steps they
/// would take more time than the search could gain.
inline constexpr StepId kMostExactSteps = 4096;

struct ExactOptions {
  /// Largest number of bytes for states. The search ends when this memory is used up.
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  /// Peak of the order that the caller already has, in bytes. The caller cannot use orders with a higher peak, so the
  /// search leaves them out.
  std::int64_t upper_bound = std::numeric_limits<std::int64_t>::max();
};

struct ExactResult {
  /// Order of the steps in to \ from. Empty if no order with a peak of at most upper_bound is known.
  std::vector<StepId> order;
  std::int64_t peak = 0;         ///< peak of `order`
  std::int64_t lower_bound = 0;  ///< proved lower bound on the peak of every order of the steps in to \ from
  /// Whether it is proved that `order` is optimal, or that every order has a peak above upper_bound.
  bool proved = false;
  std::int64_t states = 0;  ///< number of cuts visited
};

/// Finds an order of the steps in to \ from with the least peak. Uses bottleneck search over the lattice of topological
/// cuts, with hashed states (cut_search.h). First splits the problem at a minimum cut; some optimal order passes
/// through this cut (Lemma 3.13). Afterwards shrinks both parts by rules that keep the least peak, for example by
/// replacing chains by segments. Searches each part alternately from its beginning and from its end.
///
/// Stops at a proof, when `watch` expires, or at the memory limit. Without a proof, the order is completed greedily,
/// and lower_bound is the bound proved so far. Deterministic for a work limit. Takes time exponential in the width of
/// the graph.
ExactResult exact_order(const StepGraph& graph, const Cut& from, const Cut& to, const ExactOptions& options,
                        core::Stopwatch& watch);
/// Finds an order of all steps of the graph in the same way.
ExactResult exact_order(const StepGraph& graph, const ExactOptions& options, core::Stopwatch& watch);

/// Makes the exact search an oracle for find_schedule(). The oracle gives up if the search ends without a proof.
PeakOracle exact_oracle(const ExactOptions& options, core::Stopwatch& watch);

/// Searches for an order of all steps whose peak is below the incumbent's, by the exact search. Calls found() if there
/// is such an order. Raises the incumbent's lower bound to the bound that the search proved.
void exact_search(const StepGraph& steps, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch,
                  const std::function<void(const std::vector<StepId>&)>& found);
/// Searches for an order of the whole graph whose peak is below the incumbent's, by the exact search. Offers such an
/// order to the incumbent. Raises the incumbent's lower bound to the bound that the search proved.
void exact_search(const core::Graph& graph, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch);

}  // namespace cairn::solvers
