#pragma once

#include "cairn/solvers/offload/support/offload.h"
#include "cairn/solvers/registry.h"

namespace cairn::solvers {

/// Returns options with the host's link and budget, and with the scope and the seed of `search`. The caller sets the
/// device's budget and the limit.
OffloadOptions offload_options(const core::HostMemory& host, const SolveOptions& search);

/// Searches for a schedule of least makespan with both recomputation and transfers. First makes schedules by `solver`,
/// which only handles recomputation, in two ways:
/// - Calls the solver on the original graph, under several budgets from options.budget up to the baseline's peak.
/// - Calls the solver under options.budget on graphs in which running a certain node, called a loading node, stands for
///   a fetch. These graphs differ in the price of a copy (offload/internal/priced_graph.h).
///
/// Then calls offload() with all these schedules and with `search.start`, if that start is given; offload() adds
/// transfers to the schedules that exceed the budget. If `search.start` fits, the answer is not worse than this start.
/// The budget and the limit of `search` are not read; those of `options` count. Throws InputError as
/// SolverInfo::solve() does.
OffloadSolution solve_with_transfers(const core::Graph& graph, const SolverInfo& solver, const SolveOptions& search,
                                     const OffloadOptions& options);

/// Makes a start for offload() from the minimum cut that bounds the makespan from below (internal/cut_start.h). The
/// start has the recomputations and transfers that the cut stands for. It may exceed the budgets. Takes milliseconds on
/// graphs of 1,000 nodes. Returns nothing if no moment needs more memory than options.budget, if the watch expires, or
/// if the scope forbids recomputation or has the rule OrderRule::stages. The limit of `options` is not read.
std::optional<core::Schedule> cut_start(const core::Graph& graph, const OffloadOptions& options,
                                        core::Stopwatch& watch);

}  // namespace cairn::solvers
