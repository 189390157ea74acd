// Offers schedules that follow cuts to the incumbent, i.e. to the best schedule found so far (offer_cut.h). A cut says
// which nodes run again after a moment, the first run of a node, and which values are in memory at this moment.

#include "cairn/solvers/remat/bound/cut/offer_cut.h"

#include <limits>
#include <optional>
#include <utility>

#include "cairn/core/profile.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/remat/bound/cut/cut_bound.h"
#include "cairn/solvers/remat/repair/evict.h"
#include "cairn/solvers/remat/repair/retain.h"

namespace cairn::solvers {
namespace {

/// Offers a schedule that follows a cut. If the schedule exceeds the budget, evicts values and also offers the result.
/// If the last schedule offered is within the budget, also retains values where they fit, i.e. keeps them in memory
/// instead of computing them again, and offers the result.
void offer_schedule(const core::Graph& graph, core::Schedule schedule, std::int64_t budget, Incumbent& incumbent,
                    core::Stopwatch& watch) {
  const core::Evaluation evaluation = incumbent.offer(schedule);
  if (schedule.length() > kMostRetained || watch.expired_now() || incumbent.done()) return;
  core::EditableSchedule work(graph);
  if (evaluation.peak > budget) {
    work.assign(schedule.steps);
    const bool fits = evict_until_it_fits(graph, work, budget, 0, watch, incumbent.scope().max_occurrences);
    schedule = {work.steps(), {}};
    incumbent.offer(schedule);
    if (!fits) return;
  }
  offer_retained(graph, schedule, budget, work, incumbent, watch);
}

/// Offers the schedule that follows CutBound::choice, and the schedule of a nearly cheapest cut at CutBound::moment.
void offer_schedules(const core::Graph& graph, const CutBound& bound, const MomentCutOptions& options,
                     Incumbent& incumbent, core::Stopwatch& watch) {
  if (bound.choice) offer_schedule(graph, follow_choice(graph, *bound.choice), options.budget, incumbent, watch);
  if (incumbent.done()) return;
  std::optional<CutSchedule> cut = cut_schedule(graph, options, bound.moment, watch);
  if (cut) offer_schedule(graph, std::move(cut->schedule), options.budget, incumbent, watch);
}

MomentCutOptions options_for(std::int64_t budget, const Incumbent& incumbent) {
  // This work takes about half a second. A larger limit rarely improves the result.
  constexpr std::int64_t kTogetherWork = 20'000'000;
  return {.budget = budget,
          .order = incumbent.scope().order,
          .link = {},
          .host_budget = {},
          .solved = 1,
          .together_work = kTogetherWork};
}

/// Offers the schedules of the best cuts for budgets between `low` and the incumbent's peak, by bisection.
void bisect_cuts(const core::Graph& graph, std::int64_t low, Incumbent& incumbent, core::Stopwatch& watch) {
  constexpr std::int64_t kNear = 200;  // the bisection ends when its range is at most the peak divided by this number
  std::int64_t high = incumbent.peak();
  while (high - low > high / kNear && !watch.expired_now()) {
    const std::int64_t budget = low + (high - low) / 2;
    // No integer programs are solved here, because they take more time than they save.
    MomentCutOptions options = options_for(budget, incumbent);
    options.solved = 0;
    const CutBound bound = cut_bound(graph, options, std::numeric_limits<std::int64_t>::max(), {}, watch);
    if (bound.infeasible) {
      incumbent.raise_peak_bound({budget + 1, {incumbent.scope().order, 0}});
    } else if (bound.moment != core::kNoNode) {
      offer_schedules(graph, bound, options, incumbent, watch);
    }
    if (incumbent.peak() <= budget) {
      high = incumbent.peak();
    } else {
      low = budget + 1;
    }
  }
}

}  // namespace

void offer_cut(const core::Graph& graph, std::int64_t budget, Incumbent& incumbent, core::Stopwatch& watch) {
  const Scope scope{incumbent.scope().order, 0};
  const MomentCutOptions options = options_for(budget, incumbent);
  const std::int64_t enough = incumbent.within_budget() ? incumbent.cost() : std::numeric_limits<std::int64_t>::max();
  const CutBound bound = cut_bound(graph, options, enough, {}, watch);
  if (bound.infeasible) return incumbent.raise_peak_bound({budget + 1, scope});
  incumbent.raise_cost_bound({bound.value, scope});
  if (bound.moment == core::kNoNode || incumbent.done() || scope.order == OrderRule::stages) return;
  offer_schedules(graph, bound, options, incumbent, watch);
}

void offer_low_cuts(const core::Graph& graph, Incumbent& incumbent, core::Stopwatch& watch) {
  bisect_cuts(graph, core::peak_lower_bound(graph), incumbent, watch);
}

void offer_affordable_cuts(const core::Graph& graph, std::int64_t max_cost, Incumbent& incumbent,
                           core::Stopwatch& watch) {
  constexpr double kShare = 0.5;  // fraction of the limit for the bound on the peak
  const std::int64_t bound = core::within(watch, kShare, [&](core::Stopwatch& part) {
    MomentCutOptions options = options_for(0, incumbent);
    options.together = 1;
    return cut_peak_bound(graph, options, max_cost, incumbent.peak(), part);
  });
  incumbent.raise_peak_bound({bound, {incumbent.scope().order, 0}});
  if (incumbent.scope().order != OrderRule::stages) bisect_cuts(graph, bound, incumbent, watch);
}

}  // namespace cairn::solvers
