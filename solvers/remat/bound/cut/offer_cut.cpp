#include "cairn/solvers/remat/bound/cut/offer_cut.h"

#include <limits>
#include <optional>

#include "cairn/core/profile.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/remat/bound/cut/cut_bound.h"
#include "cairn/solvers/remat/repair/evict.h"
#include "cairn/solvers/remat/repair/retain.h"

namespace cairn::solvers {

void offer_cut(const core::Graph& graph, std::int64_t budget, Incumbent& incumbent, core::Stopwatch& watch) {
  const Scope scope{incumbent.scope().order, 0};
  const MomentCutOptions options{.budget = budget, .order = scope.order, .link = {}, .host_budget = {}};
  const std::int64_t enough = incumbent.within_budget() ? incumbent.cost() : std::numeric_limits<std::int64_t>::max();
  const CutBound bound = cut_bound(graph, options, enough, {}, watch);
  if (bound.infeasible) return incumbent.raise_peak_bound({budget + 1, scope});
  incumbent.raise_cost_bound({bound.value, scope});
  if (bound.moment == core::kNoNode || incumbent.done() || scope.order == OrderRule::stages) return;
  MomentBound best(graph, bound.moment, options);
  best.maximize(watch);
  const std::optional<MomentCut> cut = best.cut(watch);
  if (!cut) return;
  const core::Schedule schedule = follow_cut(graph, bound.moment, *cut);
  const core::Evaluation evaluation = incumbent.offer(schedule);
  if (schedule.length() > kMostRetained || watch.expired_now()) return;
  core::EditableSchedule work(graph);
  core::Schedule fits = schedule;
  if (evaluation.peak > budget) {
    work.assign(schedule.steps);
    if (!evict_until_it_fits(graph, work, budget, 0, watch, incumbent.scope().max_occurrences)) return;
    fits = {work.steps()};
    incumbent.offer(fits);
  }
  offer_retained(graph, fits, budget, work, incumbent, watch);
}

}  // namespace cairn::solvers
