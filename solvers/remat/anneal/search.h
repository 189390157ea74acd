#pragma once

#include <functional>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

struct SearchOptions {
  /// Number of parallel searches (islands), one thread each; 0: one for each core, or two under a work limit.
  int islands = 0;
  /// The search ends when this fraction of its limit (time or work) has passed without an improvement.
  double patience = 0.5;
  /// Called on the caller's thread between rounds, each of which takes a fraction of a second. If it returns true, a
  /// proof of optimality can still come. In this case the search ignores `patience` and goes on until the limit.
  std::function<bool()> between;
};

/// Improves the incumbent by a search over order and recomputation together. This is the main search of `auto`. The
/// incumbent is valid at any time. Runs several searches (islands) in parallel:
/// - Each island anneals schedules (annealer.h) in runs that become longer and hotter.
/// - After each run, exact searches improve windows of the island's best schedule, which are ranges of consecutive
/// steps (window.h).
/// - Some of the next runs start from the best schedule of all islands.
///
/// With a budget, looks for the cheapest schedule within the budget. Without a budget, first looks for the lowest peak
/// among schedules that cost at most options.max_cost, by lowering a budget step by step. Afterwards looks for the
/// cheapest schedule with that peak.
///
/// The order rule of the scope must be `free` or `input`, with any number of occurrences. Throws std::logic_error for
/// stages. Ends at the limit, when the incumbent cannot be improved, or by `patience`. Without a limit, ends when more
/// than m + 2000 (n + 1) moves were made since the last improvement, for n nodes and m moves before that improvement.
/// For the same seed and work limit the answer is the same on every machine.
Stop search(const core::Graph& graph, const SolveOptions& options, const SearchOptions& search, Incumbent& incumbent,
            core::Stopwatch& watch);

}  // namespace cairn::solvers
