#pragma once

#include "cairn/solvers/offload/offload.h"
#include "cairn/solvers/registry.h"

namespace cairn::solvers {

/// Returns options with the host's link and budget, and with the scope and the seed of `search`. The caller sets the
/// device's budget and the limit.
OffloadOptions offload_options(const core::HostMemory& host, const SolveOptions& search);

/// Finds a schedule of least makespan with recomputation and transfers together. Calls `solver`, which knows
/// recomputation only,
/// - under several budgets on the original graph, from options.budget up to the baseline's peak. offload() brings its
///   schedules within the budget by transfers;
/// - under options.budget on graphs in which a run of a loading node stands for a fetch, at several prices of copies
///   (offload/internal/priced_graph.h).
/// Then calls offload() with all schedules found and with `search.start`, if that is given. The answer is not worse
/// than `search.start` if that fits. The budget and the limit of `search` are not read; those of `options` count.
/// Throws InputError as SolverInfo::solve() does.
OffloadSolution solve_with_transfers(const core::Graph& graph, const SolverInfo& solver, const SolveOptions& search,
                                     const OffloadOptions& options);

/// Returns the schedule of the minimum cut that bounds the makespan from below, with the transfers of the cut
/// (internal/cut_start.h), as a start for offload(). It may exceed the budgets. Takes milliseconds on graphs of 1,000
/// nodes. Returns nothing if no moment needs more memory than there is, if the watch expires, or if the scope forbids
/// recomputation or has the rule OrderRule::stages. The limit of `options` is not read.
std::optional<core::Schedule> cut_start(const core::Graph& graph, const OffloadOptions& options,
                                        core::Stopwatch& watch);

}  // namespace cairn::solvers
