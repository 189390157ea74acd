#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/bound/cut/moment_cut.h"
#include "cairn/solvers/remat/bound/cut/moments.h"
#include "cairn/solvers/remat/bound/cut/moments_program.h"

namespace cairn::solvers {

struct CutBound {
  /// Lower bound on the cost of all schedules within the budget; with a link, on their makespan
  std::int64_t value = 0;
  bool infeasible = false;  ///< whether it is proved that no schedule is within the budget
  /// The bound, or the proof of infeasibility, follows from what is in memory at one moment: while this node runs for
  /// the first time. If several moments were used together, this is the node of the first one. kNoNode: the bound is
  /// only the cost of running each node once.
  core::NodeId moment = core::kNoNode;
  /// A cheap choice of runs and held values at one or several moments. Absent if no integer program was solved.
  std::optional<MomentsChoice> choice;
  /// The proof of the highest bound that integer programs gave. This bound can be below `value`.
  MomentsProof proof;
};

/// Computes a lower bound on the cost of all schedules within the budget or, if there is a link, on their makespan.
/// First computes MomentBound, which takes some minimum cuts, at several moments. A moment is the first run of a node.
/// The moments tried are those at which the input order needs the most memory, and their neighbours. Without a link,
/// the bounds of the best moments are then raised to the optima of their integer programs by moments_optimum().
/// Finally, moments are added to the best one, up to MomentCutOptions::together in all. Candidates for this are the
/// best single moments, and the moments at which the schedule that follows the best choice so far (follow_choice())
/// exceeds the budget. Calls `raised` with every bound that is higher than all bounds before. Ends when the watch
/// expires, or when the bound reaches `enough`.
CutBound cut_bound(const core::Graph& graph, const MomentCutOptions& options, std::int64_t enough,
                   const std::function<void(std::int64_t)>& raised, core::Stopwatch& watch);

/// Returns a lower bound on the peak of all schedules that cost at most `max_cost`. With a link, the bound holds for
/// all schedules whose makespan is at most `max_cost`. Finds the bound by bisection: a budget is too small if the bound
/// of cut_bound() for this budget is above `max_cost`. `known` is the peak of a known schedule. The result is at least
/// core::peak_lower_bound() and at most `known`. options.budget is ignored. Takes about 20 calls of cut_bound().
std::int64_t cut_peak_bound(const core::Graph& graph, MomentCutOptions options, std::int64_t max_cost,
                            std::int64_t known, core::Stopwatch& watch);

/// Returns a schedule that follows a cut: a choice of what runs again after the moment and of what is in memory at the
/// moment (see MomentCut). Nodes run in the input order, both up to the moment and after it. Before a node runs after
/// the moment, its inputs that the cut neither holds nor moves are computed again, together with the inputs that are
/// missing for this. If `order` is `free`, a node that the cut runs after the moment does not run before it, unless a
/// node that runs before the moment needs its outputs. The schedule has no transfers. It may exceed the budget, because
/// the cut limits memory only at the moment.
core::Schedule follow_cut(const core::Graph& graph, core::NodeId moment, const MomentCut& cut, OrderRule order);

/// Holds a cut and the schedule that follows it.
struct CutSchedule {
  MomentCut cut;
  core::Schedule schedule;  ///< the schedule of follow_cut()
};
/// Returns a cut at the moment whose held bytes are within the budget and whose cost is nearly the least, with its
/// schedule. Returns nothing if no such cut is found or the watch expires.
std::optional<CutSchedule> cut_schedule(const core::Graph& graph, const MomentCutOptions& options, core::NodeId moment,
                                        core::Stopwatch& watch);

}  // namespace cairn::solvers
