#pragma once

#include <functional>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

struct SearchOptions {
  int islands = 0;  ///< number of parallel searches, a thread each; 0: one a core, two under a work limit
  /// Fraction of the limit, of time or work: the search ends when so much of it has brought nothing.
  double patience = 0.5;
  /// Called between rounds of a fraction of a second, on the caller's thread. Returns true if a proof may still come,
  /// so that the search goes on until the limit, whatever it finds.
  std::function<bool()> between;
};

/// Improves the incumbent by a search over order and recomputation at once, which has an answer at any time: the search
/// behind `auto`. Islands, i.e. parallel searches, anneal schedules (annealer.h) in runs that become longer and hotter,
/// and re-optimise windows (window.h) of the best of each run; some of the next runs start from the best of all
/// islands. With a budget, looks for the cheapest schedule within it. Without one, looks for the lowest peak within
/// options.max_cost, by falling budgets, then for the cheapest schedule of that peak.
///
/// Keeps any scope with free or input order and any number of occurrences; throws std::logic_error for stages. Ends at
/// the limit, when the incumbent cannot be improved, or by `patience`; without a limit, when as many moves as were made
/// until the last improvement, plus some thousand a node, have brought nothing. Gives the same answer everywhere for a
/// seed and a work limit.
Stop search(const core::Graph& graph, const SolveOptions& options, const SearchOptions& search, Incumbent& incumbent,
            core::Stopwatch& watch);

}  // namespace cairn::solvers
