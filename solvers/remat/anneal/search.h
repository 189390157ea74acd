#pragma once

#include <functional>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

struct SearchOptions {
  int islands = 0;  ///< searches side by side, a thread each; 0: one a core, under a work limit two
  /// A search ends where this part of its limit, of time or work, brought nothing.
  double patience = 0.5;
  /// Called between rounds of a fraction of a second, on the caller's thread; true: a proof may come yet, so that the
  /// search goes on until the limit, whatever it finds.
  std::function<bool()> between;
};

/// The anytime search behind `auto`: order and recomputation at once, from the incumbent. Islands anneal schedules
/// (annealer.h) in runs that become longer and hotter, and re-optimise windows (window.h) of the best of each run; the
/// best of all islands is where some of the next runs start. With a budget the cheapest schedule within it; without,
/// the lowest peak within options.max_cost, by budgets that fall, and then the cheapest of that peak.
///
/// Scopes that it keeps: any number of occurrences, free and input order; not stages (std::logic_error). Ends at the
/// limit, when the incumbent cannot be improved, or by `patience`; without a limit, when as many moves as were made
/// until the last improvement, and some thousand a node, brought nothing. The same answer everywhere for a seed and a
/// work limit.
Stop search(const core::Graph& graph, const SolveOptions& options, const SearchOptions& search, Incumbent& incumbent,
            core::Stopwatch& watch);

}  // namespace cairn::solvers
