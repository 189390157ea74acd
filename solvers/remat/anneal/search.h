#pragma once

#include <functional>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/support/incumbent.h"

namespace cairn::solvers {

/// Improves the incumbent, the best known schedule, by a search over order and recomputation together. This is the main
/// search of `auto`. Runs several searches (islands) in parallel, one for each core, or two if the limit counts work
/// units:
/// - Each island anneals schedules (annealer.h) in runs. Later runs are longer and begin at a higher temperature.
/// - After each run, exact searches improve windows of the schedule that the run found. A window is a range of
///   consecutive steps (window.h).
/// - Once a schedule within the budget is known, new runs start from the best known schedule of all islands.
///
/// With a budget, looks for the cheapest schedule within the budget. Without a budget, first looks for the lowest peak
/// among schedules that cost at most options.max_cost. To do so, the search sets itself a budget slightly below the
/// lowest known peak, again and again. Afterwards looks for the cheapest schedule with the lowest peak found.
///
/// Ends at the limit, when the incumbent cannot be improved, or when half of the limit of time or work has passed since
/// the last improvement. If there is no limit, the search ends when more than `m + 2000 (n + 1)` moves were made since
/// the last improvement, for n nodes and m moves before that improvement. `between` is called on the caller's thread,
/// several times a second. While it returns true, the search does not end for lack of improvements. A caller that
/// computes a proof of optimality at the same time returns true as long as the proof can still succeed. The incumbent
/// is valid at any time. For the same seed and work limit the answer is the same on every machine, unless there are
/// peers.
///
/// If options.peers is set, each better schedule is sent to the peers, i.e. to other processes that run the same
/// search, and the schedules that the peers send are offered to the incumbent, so that the islands of all processes
/// continue from the best schedule of all.
///
/// Throws std::logic_error if the order rule of the scope is `stages`. Any Scope::max_occurrences is accepted.
Stop search(const core::Graph& graph, const SolveOptions& options, const std::function<bool()>& between,
            Incumbent& incumbent, core::Stopwatch& watch);

}  // namespace cairn::solvers
