#include "cairn/pipeline/least_budget.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
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
        watch_(worked(options.search.limit)) {
    least_.bound.value = rounded_.lower_bound;
    least_.bound.scope = solvers::kAnySchedule;
  }

  LeastBudget run() {
    offer(core::baseline_schedule(problem_.graph), "none", 0.05);
    if (options_.search.start != nullptr) offer(*options_.search.start, solver_.name, 0.05);
    calls();
    if (!options_.peak_only) place();
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
  static core::Limit worked(core::Limit limit) {
    limit.work = least_budget_work(limit);
    return limit;
  }

  bool done() { return least_.proved() || least_.bytes <= options_.enough || watch_.expired_now(); }

  solvers::PlanOptions planning(double share) const {
    constexpr std::int64_t kWork = 150'000'000;
    solvers::PlanOptions plan = options_.plan;
    plan.guard_bytes = 0;
    plan.capacity.reset();
    const core::Limit part = watch_.share(share);
    plan.limit = {part.seconds, std::min({kWork, plan.limit.work, part.work}), part.stop};
    return plan;
  }

  /// Plans it, under other orders of the same steps too, and keeps it if that is the least so far.
  void offer(core::Schedule schedule, std::string_view by, double share) {
    LeastBudget one;
    if (options_.peak_only) {
      one.evaluation = core::evaluate(problem_.graph, schedule);
      one.bytes = one.evaluation.peak;
    } else {
      const solvers::PlanOptions options = planning(share);
      if (options_.search.scope.order == solvers::OrderRule::free) {
        solvers::PlannedOrder planned = solvers::plan_some_order(problem_.graph, schedule, options);
        schedule = std::move(planned.schedule);
        one.plan = std::move(planned.plan.plan);
        watch_.charge(planned.plan.work);
      } else {
        solvers::PlanSolution planned = solvers::find_plan(solvers::plan_problem(problem_.graph, schedule), options);
        one.plan = std::move(planned.plan);
        watch_.charge(planned.work);
      }
      one.bytes = needed(*one.plan, schedule);
    }
    keep(std::move(one), std::move(schedule), by);
  }

  /// A plan may be below the peak: where a node in place says less of its scratch than it saves.
  std::int64_t needed(const core::Plan& plan, const core::Schedule& schedule) const {
    return std::max(plan.bytes, core::evaluate(rounded_.graph, schedule).peak);
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

  /// Of the solver, without a budget, each twice as long as the one before.
  void calls() {
    constexpr double kFirst = 0.05, kAll = 0.75;
    const double all = kAll * static_cast<double>(watch_.rest().work);
    core::Schedule latest;
    double part = kFirst, spent = 0;
    while (!done() && spent < kAll) {
      // What would be left for one more call is less than this one got.
      const double share = spent + 3 * part > kAll ? kAll - spent : part;
      solvers::SolveOptions search = options_.search;
      search.budget.reset();
      search.max_cost.reset();
      search.limit = watch_.rest();
      if (search.limit.counts_work()) search.limit.work = static_cast<std::int64_t>(share / kAll * all);
      search.start = latest.steps.empty() ? options_.search.start : &latest;
      solvers::Solution found = solver_.solve(rounded_.graph, search);
      watch_.charge(found.work);
      spent += share;
      part = 2 * share;
      if (found.peak_bound.value > least_.bound.value) least_.bound = found.peak_bound;
      least_.stop = found.stop;
      if (found.schedule.steps.empty()) break;
      evaluate_again(solver_.name, rounded_.graph, found);
      lowest_peak_ = found.peak;
      const bool same = found.schedule.steps == latest.steps;
      latest = std::move(found.schedule);
      if (!same) offer(latest, solver_.name, 0.2);
      if (found.stop == solvers::Stop::proved || found.stop == solvers::Stop::ended) break;
    }
  }

  /// Between the lowest peak and the lowest plan.
  void place() {
    constexpr int kTries = 4;
    constexpr std::int64_t kLongest = 20'000;  // steps
    const std::int64_t unit = options_.plan.alignment;
    std::int64_t low = std::max(lowest_peak_, least_.bound.value);
    const auto scope = options_.search.scope;
    if (solver_.name != "auto" || scope.order == solvers::OrderRule::stages || scope.max_occurrences == 1) return;
    if (!solvers::can_search_placed(rounded_.graph)) return;
    for (int i = 0; i < kTries && !done() && least_.schedule.length() <= kLongest; ++i) {
      const std::int64_t budget = (low + (least_.bytes - low) / 2) / unit * unit;
      if (budget < low || budget >= least_.bytes) return;
      std::vector<std::int64_t> offsets;
      for (const core::Buffer& buffer : least_.plan->buffers) offsets.push_back(buffer.offset);
      const solvers::PlacedSolution found =
          solvers::search_placed(rounded_.graph, {{least_.schedule, std::move(offsets), 0}},
                                 {.budget = budget,
                                  .scope = scope,
                                  .limit = watch_.share(1.0 / (kTries - i)),
                                  .seed = options_.search.seed,
                                  .enough = std::numeric_limits<std::int64_t>::max()});
      watch_.charge(found.work);
      if (!found.best) {
        low = budget + unit;
        continue;
      }
      solvers::PlanProblem problem = solvers::plan_problem(problem_.graph, found.best->schedule);
      problem.rules.resize(problem.buffers.size());
      for (std::size_t b = 0; b < problem.buffers.size(); ++b) problem.rules[b].offset = found.best->offsets[b];
      LeastBudget one;
      one.plan = solvers::greedy_plan(problem, planning(0.1)).plan;
      one.bytes = needed(*one.plan, found.best->schedule);
      keep(std::move(one), found.best->schedule, solver_.name);
    }
  }

  const Problem& problem_;
  const Problem& rounded_;
  const solvers::SolverInfo& solver_;
  const LeastBudgetOptions& options_;
  core::Stopwatch watch_;
  LeastBudget least_;
  bool any_ = false;
  std::int64_t lowest_peak_ = 0;
};

}  // namespace

std::int64_t least_budget_work(const core::Limit& limit) {
  if (limit.counts_work() || !std::isfinite(limit.seconds)) return limit.work;
  constexpr double kWorkPerSecond = 1.8e8;  // three tenths of what a core does in a second
  // What passed before the search began must not change the answer.
  const double seconds = limit.seconds >= 2 ? std::round(limit.seconds) : std::round(limit.seconds * 5) / 5;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(kWorkPerSecond * std::max(seconds, 0.1)));
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
  if (solver.name != all.name) own.search.limit = watch.share(0.5);
  LeastBudget least = known ? *std::move(known) : find_least_budget(problem, rounded, solver, own);
  const bool proved = least.proved() && least.bound.scope.contains(options.search.scope);
  const bool enough = proved || !problem.budget || least.bytes <= *problem.budget;
  if (enough || solver.name == all.name || !all.honours(options.search.scope)) return least;
  LeastBudgetOptions others = options;
  others.search.own.clear();
  others.search.limit = watch.rest();
  LeastBudget other = find_least_budget(problem, rounded, all, others);
  return other.bytes < least.bytes ? other : least;
}

}  // namespace cairn::pipeline
