#include "cairn/pipeline/least_budget.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/pipeline/internal/overrun.h"
#include "cairn/pipeline/internal/placed_plan.h"
#include "cairn/pipeline/solve.h"
#include "cairn/solvers/remat/placed_search.h"

namespace cairn::pipeline {
namespace {

class LeastBudgetSearch {
 public:
  LeastBudgetSearch(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                    const LeastBudgetOptions& options)
      : problem_(problem),
        rounded_(options.peak_only ? problem : rounded),
        solver_(solver),
        options_(options),
        watch_(options.search.limit) {
    least_.bound.value = options.peak_only ? rounded_.lower_bound : rounded_.plan_bound();
    least_.bound.scope = solvers::kAnySchedule;
  }

  /// The parts are the same under every limit, which only says after how many it ends.
  LeastBudget run() {
    constexpr std::int64_t kFirst = 100'000, kPlacedFrom = 800'000;
    constexpr double kMostPlanning = 0.1;  // of the time; where it suffices, plans end sooner
    const double begun = watch_.seconds();
    offer(core::baseline_schedule(problem_.graph), "none");
    planning_.add(std::min(watch_.seconds() - begun, kMostPlanning * options_.search.limit.seconds));
    if (options_.search.start != nullptr) offer(*options_.search.start, solver_.name);
    bool more = true;
    // The first part is what there is of it; none of the others is cut.
    for (std::int64_t part = kFirst; more && !done() && (part == kFirst || part <= watch_.rest().work); part *= 2) {
      more = call(part);
      if (part >= kPlacedFrom || !more) place(part);
    }
    if (watch_.interrupted()) {
      least_.stop = solvers::Stop::interrupted;
    } else if (least_.proved()) {
      least_.stop = solvers::Stop::proved;
    }
    least_.seconds = watch_.seconds();
    least_.work = watch_.work();
    return std::move(least_);
  }

 private:
  bool done() {
    return least_.proved() || least_.bytes <= options_.enough || watch_.expired_now() ||
           watch_.rest().seconds < planning_.seconds() + searching_.seconds();
  }

  solvers::PlanOptions planning() const {
    constexpr std::int64_t kWork = 60'000'000;  // a tenth of a second, beside the work of the search
    solvers::PlanOptions plan = options_.plan;
    plan.guard_bytes = 0;
    plan.capacity.reset();
    const core::Limit rest = watch_.rest();
    plan.limit = {std::max(0.0, rest.seconds), std::min(kWork, plan.limit.work), rest.stop};
    return plan;
  }

  /// Plans it, under other orders of the same steps too, and keeps it if that is the least so far.
  void offer(core::Schedule schedule, std::string_view by) {
    LeastBudget one;
    if (options_.peak_only) {
      one.evaluation = core::evaluate(problem_.graph, schedule);
      one.bytes = one.evaluation.peak;
    } else {
      const solvers::PlanOptions options = planning();
      if (options_.search.scope.order == solvers::OrderRule::free) {
        solvers::PlannedOrder planned = solvers::plan_some_order(problem_.graph, schedule, options);
        schedule = std::move(planned.schedule);
        one.plan = std::move(planned.plan.plan);
      } else {
        solvers::PlanSolution planned = solvers::find_plan(solvers::plan_problem(problem_.graph, schedule), options);
        one.plan = std::move(planned.plan);
      }
      one.bytes = one.plan->bytes;
    }
    keep(std::move(one), std::move(schedule), by);
  }

  void keep(LeastBudget one, core::Schedule schedule, std::string_view by) {
    if (any_ && one.bytes >= least_.bytes) return;
    any_ = true;
    least_.bytes = one.bytes;
    least_.plan = std::move(one.plan);
    least_.schedule = std::move(schedule);
    least_.evaluation = core::evaluate(problem_.graph, least_.schedule);
    least_.solver = by;
  }

  core::Limit limit_of(std::int64_t part) const {
    core::Limit limit = searching_.before(planning_.before(watch_.rest()));
    limit.work = std::min(limit.work, part);
    return limit;
  }

  /// Of the solver, without a budget, from the schedule of the call before. Whether another one may find more.
  bool call(std::int64_t part) {
    solvers::SolveOptions search = options_.search;
    search.budget.reset();
    search.max_cost.reset();
    search.limit = limit_of(part);
    if (!latest_.steps.empty()) search.start = &latest_;
    const double begun = watch_.seconds();
    solvers::Solution found = solver_.solve(rounded_.graph, search);
    searching_.learn(search.limit, watch_.seconds() - begun);
    watch_.charge(std::max<std::int64_t>(found.work, 1));
    if (!options_.peak_only) found.peak_bound.value -= rounded_.plan_slack;
    if (found.peak_bound.value > least_.bound.value) least_.bound = found.peak_bound;
    least_.stop = found.stop;
    least_.tradeoffs.insert(least_.tradeoffs.end(), found.tradeoffs.begin(), found.tradeoffs.end());
    if (found.schedule.steps.empty()) return false;
    evaluate_again(solver_.name, rounded_.graph, found);
    lowest_peak_ = found.peak;
    const bool same = found.schedule.steps == latest_.steps;
    latest_ = std::move(found.schedule);
    if (!same) offer(latest_, solver_.name);
    const bool endless = !watch_.rest().counts_work() && !std::isfinite(watch_.rest().seconds);
    return found.stop != solvers::Stop::proved && found.stop != solvers::Stop::ended &&
           !(endless && found.stop == solvers::Stop::stagnated);
  }

  /// Between the lowest peak and the lowest plan.
  void place(std::int64_t part) {
    constexpr int kTries = 3;
    constexpr std::int64_t kLongest = 20'000;  // steps
    const std::int64_t unit = options_.plan.alignment;
    const solvers::Scope& scope = options_.search.scope;
    if (options_.peak_only || solver_.name != "auto" || scope.order == solvers::OrderRule::stages ||
        scope.max_occurrences == 1 || !solvers::can_search_placed(rounded_.graph))
      return;
    std::int64_t low = std::max(lowest_peak_, least_.bound.value);  // nothing is in place
    for (int i = 0; i < kTries && !done() && least_.schedule.length() <= kLongest; ++i) {
      const std::int64_t budget = (low + (least_.bytes - low) / 2) / unit * unit;
      if (budget < low || budget >= least_.bytes) return;
      const solvers::PlacedSolution found =
          solvers::search_placed(rounded_.graph, {placed_as(least_.schedule, *least_.plan)},
                                 {.budget = budget,
                                  .scope = scope,
                                  .limit = limit_of(part / kTries),
                                  .seed = options_.search.seed,
                                  .enough = std::numeric_limits<std::int64_t>::max()});
      watch_.charge(std::max<std::int64_t>(found.work, 1));
      if (!found.best) {
        low = budget + unit;
        continue;
      }
      LeastBudget one;
      one.plan = plan_of(problem_.graph, *found.best, planning());
      one.bytes = one.plan->bytes;
      keep(std::move(one), found.best->schedule, solver_.name);
    }
  }

  const Problem& problem_;
  const Problem& rounded_;
  const solvers::SolverInfo& solver_;
  const LeastBudgetOptions& options_;
  core::Stopwatch watch_;
  Overrun planning_, searching_;
  LeastBudget least_;
  bool any_ = false;
  core::Schedule latest_;  ///< of the solver
  std::int64_t lowest_peak_ = 0;
};

}  // namespace

std::int64_t least_budget_work(const core::Limit& limit) {
  if (limit.counts_work() || !std::isfinite(limit.seconds)) return limit.work;
  constexpr double kWorkPerSecond = 4e5;  // of a second; a core does it in a tenth to two fifths of one
  // What passed before the search began must not change the answer.
  const double seconds = limit.seconds >= 2 ? std::round(limit.seconds) : std::round(limit.seconds * 5) / 5;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(kWorkPerSecond * std::max(seconds, 0.1)));
}

std::optional<LeastBudget> baseline_within(const Problem& problem, const Problem& rounded, std::int64_t budget,
                                           solvers::PlanOptions options) {
  if (rounded.baseline.peak - rounded.plan_slack > budget) return std::nullopt;
  LeastBudget baseline;
  baseline.schedule = core::baseline_schedule(problem.graph);
  baseline.evaluation = problem.baseline;
  options.capacity = budget;
  baseline.plan = solvers::plan_memory(problem.graph, baseline.schedule, options);
  baseline.bytes = baseline.plan->bytes;
  if (baseline.bytes > budget) return std::nullopt;
  return baseline;
}

LeastBudget find_least_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                              const LeastBudgetOptions& options) {
  return LeastBudgetSearch(problem, rounded, solver, options).run();
}

LeastBudget least_known(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                        std::optional<LeastBudget> known, const LeastBudgetOptions& options) {
  const core::Stopwatch watch(options.search.limit);
  const solvers::SolverInfo& all = solvers::find_solver("auto");
  LeastBudgetOptions own = options;
  own.search.limit.work = least_budget_work(options.search.limit);
  if (solver.name != all.name) own.search.limit.seconds /= 2;
  LeastBudget least = known ? *std::move(known) : find_least_budget(problem, rounded, solver, own);
  const bool proved = least.proved() && least.bound.scope.contains(options.search.scope);
  const bool enough = proved || !problem.budget || least.bytes <= *problem.budget;
  if (enough || solver.name == all.name || !all.honours(options.search.scope)) return least;
  LeastBudgetOptions others = options;
  others.search.own.clear();
  others.search.limit.work = least_budget_work(options.search.limit);
  others.search.limit.seconds = watch.rest().seconds;
  LeastBudget other = find_least_budget(problem, rounded, all, others);
  return other.bytes < least.bytes ? other : least;
}

}  // namespace cairn::pipeline
