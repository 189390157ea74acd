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
  std::int64_t value = 0;   ///< no schedule within the budget costs less; with a link, none has a lower makespan
  bool infeasible = false;  ///< whether it is proved that no schedule is within the budget
  /// The moment that gives the bound or the proof, or the first of several, if the bound is above the cost of the input
  /// order.
  core::NodeId moment = core::kNoNode;
  /// A cheap choice at one or several moments, if integer programs were solved.
  std::optional<MomentsChoice> choice;
  /// The proof of the highest bound that integer programs gave, which can be below `value`.
  MomentsProof proof;
};

/// Bounds the cost, or the makespan if there is a link, by MomentBound at several moments: those of the input order
/// that need the most memory, and their neighbours. This takes some minimum cuts for each moment. Without a link,
/// raises the bounds of the best moments to the optima of their integer programs by moments_optimum(). After that, adds
/// moments to the best one, up to MomentCutOptions::together in all. It tries those at which the schedule of the choice
/// so far exceeds the budget, and the best single ones. Calls `raised` with every bound that is higher than all before.
/// Ends when the watch expires, or when the bound reaches `enough`.
CutBound cut_bound(const core::Graph& graph, const MomentCutOptions& options, std::int64_t enough,
                   const std::function<void(std::int64_t)>& raised, core::Stopwatch& watch);

/// Bounds the peak of all schedules that cost at most `max_cost` (with a link: whose makespan is at most `max_cost`)
/// from below, by bisection: a budget is too small if cut_bound() is above `max_cost`. Returns at most `known`, the
/// peak of a known schedule, and at least core::peak_lower_bound(). options.budget is not read. Takes about 20 calls of
/// cut_bound().
std::int64_t cut_peak_bound(const core::Graph& graph, MomentCutOptions options, std::int64_t max_cost,
                            std::int64_t known, core::Stopwatch& watch);

/// Returns a schedule that follows a cut: up to the moment, nodes run in the input order. After it, they do, too, but
/// before a node runs, those of its inputs that the cut neither holds nor moves are computed again, with all that this
/// needs. If `order` is `free`, nodes whose outputs the moment's node does not need can run after the moment, even if
/// they come before it in the input order. Without transfers. The schedule may exceed the budget, because the cut says
/// nothing of other moments.
core::Schedule follow_cut(const core::Graph& graph, core::NodeId moment, const MomentCut& cut, OrderRule order);

/// A cut with the schedule that follows it.
struct CutSchedule {
  MomentCut cut;
  core::Schedule schedule;  ///< that of follow_cut()
};
/// Returns a nearly cheapest cut at a moment within the budget, or nothing if there is none or the watch expires.
std::optional<CutSchedule> cut_schedule(const core::Graph& graph, const MomentCutOptions& options, core::NodeId moment,
                                        core::Stopwatch& watch);

}  // namespace cairn::solvers
