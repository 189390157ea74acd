// Searches for the least budget within which a schedule exists (least_budget.h). Calls a solver in rounds, each round
// with more work than the one before. The schedules of lowest peak are planned, because a plan can need more bytes than
// the peak.

#include "cairn/solvers/fit/least_budget.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/fit/internal/least_with_transfers.h"
#include "cairn/solvers/fit/internal/overrun.h"
#include "cairn/solvers/fit/internal/placed_plan.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/solvers/remat/anneal/placed_search.h"

namespace cairn::fit {
namespace {

// Work of a call of the solver (`part`).
// The first call gets kFirstOfNode per node, because calls on larger graphs take longer to set up.
constexpr std::int64_t kFirstOfNode = 300, kLeastFirst = 100'000, kMostFirst = 3'000'000;
constexpr int kGrowth = 3;                // factor by which the work of a call grows after each round of calls
constexpr int kBarrenGrowth = 6;          // the same after more than kBarren barren rounds
constexpr int kBarren = 2;                // consecutive rounds in which lower() found no lower peak (barren rounds)
constexpr std::int64_t kAnew = 20;        // factor on the work of a call of search_anew()
constexpr std::int64_t kCheaper = 5;      // the same for the search for a cheaper schedule that follows
constexpr std::int64_t kLargeLonger = 5;  // the same for calls of lower() on large graphs
constexpr std::int64_t kPlacedFrom = 400'000;  // place() needs calls of at least this work
// Work of plans.
constexpr std::int64_t kPlanWork = 60'000'000;  // one plan, about 0.1 s; does not count as work of the search
constexpr std::int64_t kPlanOfPart = 400;       // plan_again(): per unit of `part`, so that it takes as long as a call
// Ends of the search, and numbers of calls.
// The search ends after kIdleRounds rounds without a lower plan; kAnyIdle: it never ends for this reason.
constexpr int kIdleRounds = 3, kAnyIdle = std::numeric_limits<int>::max();
constexpr double kMostPlanning = 0.1;  // the time kept for one more plan is at most this fraction of the time limit
constexpr int kMostPlans = 2;          // plans in plan_met(); a plan takes about as long as a short call of the solver
constexpr int kMisses = 4;             // failures after which lower() ends
constexpr int kTriesPlaced = 3;        // budgets of place()
// Budgets.
constexpr double kFirstStep = 0.8, kFirstStepOfLarge = 0.15;  // of lower(), as a fraction of the gap to the bound
constexpr double kStepGrowth = 1.5;                           // factor on this fraction after a success
constexpr std::int64_t kNearPeak = 200;  // a plan is near the lowest peak if it exceeds the peak by at most a 200th
// Sizes of graphs and schedules.
constexpr core::NodeId kManyNodes = 2000;    // graphs of this size are large: calls take mostly setup
constexpr std::int64_t kMostSteps = 20'000;  // longer schedules are not placed

/// Runs the rounds. The parameter `part` of its functions is the work limit of one call of the solver in the current
/// round.
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

  /// Calls the solver again and again, with more work each time. The work of each call does not depend on the limit of
  /// the whole search: the limit only decides after which call the search ends.
  LeastBudget run() {
    const double begun = watch_.seconds();
    offer(core::baseline_schedule(problem_.graph), "none");
    planning_.add(std::min(watch_.seconds() - begun, kMostPlanning * options_.search.limit.seconds));
    if (options_.search.start != nullptr) offer_start();
    const std::int64_t first = std::clamp(kFirstOfNode * rounded_.graph.node_count(), kLeastFirst, kMostFirst);
    // The first call is made even if less work than `first` is left. Every other call is made only if the work limit
    // leaves room for the whole work of the call (may_call()).
    call(std::nullopt, first);
    plan_met();
    const bool endless = !watch_.rest().counts_work() && !std::isfinite(watch_.rest().seconds);
    for (std::int64_t part = first; !done() && idle_ < (ended_ || endless ? kIdleRounds : kAnyIdle);) {
      const std::int64_t bytes = least_.memory(), peak = lowest_peak_;
      search_anew(part);
      lower(part);
      cheapen(part);
      plan_again(part);
      place(part);
      part *= barren_ > kBarren ? kBarrenGrowth : kGrowth;
      if (!may_call(part)) break;
      if (!ended_) call(std::nullopt, part);
      plan_met();
      idle_ = least_.memory() < bytes || lowest_peak_ < peak ? 0 : idle_ + 1;
    }
    if (watch_.interrupted()) {
      least_.stop = solvers::Stop::interrupted;
    } else if (least_.proved()) {
      least_.stop = solvers::Stop::proved;
    } else if (least_.stop == solvers::Stop::proved) {
      // A proof that the peak is the lowest does not prove that the plan is the lowest. So Stop::proved of the solver
      // is replaced.
      least_.stop = spent() ? solvers::Stop::limit : solvers::Stop::ended;
    }
    least_.seconds = watch_.seconds();
    least_.work = watch_.work();
    return std::move(least_);
  }

 private:
  bool spent() { return watch_.expired_now() || watch_.rest().seconds < planning_.seconds() + searching_.seconds(); }
  bool is_enough() { return least_.memory() <= options_.enough && watch_.seconds() >= options_.enough_from; }
  bool done() { return least_.proved() || is_enough() || spent(); }
  bool may_call(std::int64_t part) { return !done() && part <= watch_.rest().work; }

  solvers::PlanOptions planning() const {
    solvers::PlanOptions plan = options_.plan;
    plan.guard_bytes = 0;
    plan.capacity.reset();
    const core::Limit rest = watch_.rest();
    plan.limit = {std::max(0.0, rest.seconds), std::min(kPlanWork, plan.limit.work), rest.stop};
    return plan;
  }

  /// Plans a schedule that the solver `by` found and, if the scope allows any order, also other orders of the same
  /// steps. Keeps the result if its plan is the lowest so far.
  void offer(core::Schedule schedule, std::string_view by) {
    if (!options_.peak_only && !solvers::can_be_planned(problem_.graph, schedule)) return;
    PlannedSchedule one(problem_.graph, std::move(schedule), std::nullopt);
    const std::int64_t peak = one.evaluation.peak;  // peak of the steps in the given order
    if (least_.lowest.steps.empty() || std::pair(peak, one.evaluation.cost) < lowest_) {
      lowest_ = {peak, one.evaluation.cost};
      least_.lowest = one.schedule;
    }
    if (!options_.peak_only) {
      solvers::PlannedOrder planned = plan_within(options_.search.scope, problem_.graph, one.schedule, planning());
      if (planned.schedule != one.schedule)
        one = PlannedSchedule(problem_.graph, std::move(planned.schedule), std::nullopt);
      one.plan = std::move(planned.plan.plan);
      if (peak <= lowest_.first) {
        latest_planned_ = one.schedule;
        latest_plan_ = one.plan;
      }
    }
    keep(std::move(one), by);
  }

  void offer_start() {
    const core::Schedule& start = *options_.search.start;
    if (!options_.peak_only) {
      if (auto plan = plan_of_start(problem_.graph, options_.search, options_.plan))
        keep(PlannedSchedule(problem_.graph, start, std::move(plan)), solver_.name);
    }
    offer(start, solver_.name);
  }

  /// Plans the schedules of lowest peak found since the last call of plan_met(), if their plans can be lower than the
  /// lowest known plan.
  void plan_met() {
    std::vector<std::pair<core::Evaluation, core::Schedule*>> lowest;
    for (core::Schedule& schedule : met_) {
      const core::Evaluation found = core::evaluate(rounded_.graph, schedule);
      if (found.valid()) lowest.emplace_back(found, &schedule);
    }
    std::ranges::stable_sort(lowest, {}, [](const auto& one) { return std::pair(one.first.peak, one.first.cost); });
    int planned = 0;
    for (auto& [found, schedule] : lowest) {
      if (planned == kMostPlans || found.peak - rounded_.plan_slack >= least_.memory() || is_enough()) break;
      if (!planned_.emplace(found.peak, found.cost).second) continue;
      offer(std::move(*schedule), solver_.name);
      ++planned;
    }
    met_.clear();
  }

  void keep(PlannedSchedule one, std::string_view by) {
    if (any_ && one.memory() >= least_.memory()) return;
    any_ = true;
    least_.take(std::move(one), by);
  }

  /// Calls the solver without a budget, without a start, with another seed and with more work. Does this only if the
  /// last call of lower() found no lower peak. If the solver finds a lower peak, also searches for a cheaper schedule
  /// of the same peak, because cheaper schedules often have lower plans.
  void search_anew(std::int64_t part) {
    if (ended_ || barren_ == 0 || !may_call(part)) return;
    const std::int64_t before = lowest_peak_;
    ++anew_;
    solve_within(std::nullopt, limit_of(kAnew * part), true);
    if (lowest_peak_ < before && !ended_ && may_call(part) && !options_.peak_only)
      call(lowest_peak_, kCheaper * part, false);
    plan_met();
  }

  core::Limit limit_of(std::int64_t part) const {
    core::Limit limit = searching_.before(planning_.before(watch_.rest()));
    limit.work = std::min(limit.work, part);
    return limit;
  }

  /// Calls the solver with at most `part` units of work, starting from its schedule of lowest peak. Returns whether a
  /// schedule within the budget was found; false if there is no budget.
  bool call(std::optional<std::int64_t> budget, std::int64_t part, bool peak_alone = true) {
    return solve_within(budget, limit_of(part), peak_alone, latest_.steps.empty() ? options_.search.start : &latest_);
  }

  bool solve_within(std::optional<std::int64_t> budget, const core::Limit& limit, bool peak_alone,
                    const core::Schedule* start = nullptr) {
    solvers::SolveOptions search = options_.search;
    search.budget = budget;
    search.max_cost.reset();
    search.peak_alone = peak_alone;
    search.limit = limit;
    search.start = start;
    if (start == nullptr) search.seed += anew_;  // the same seed would give the same schedules again
    const double begun = watch_.seconds();
    solvers::Solution found = solver_.solve(rounded_.graph, search);
    searching_.learn(search.limit, watch_.seconds() - begun);
    watch_.charge(std::max<std::int64_t>(found.work, 1));
    if (!options_.peak_only) found.peak_bound.value -= rounded_.plan_slack;
    if (found.peak_bound.value > least_.bound.value) least_.bound = found.peak_bound;
    least_.tradeoffs.insert(least_.tradeoffs.end(), found.tradeoffs.begin(), found.tradeoffs.end());
    const bool proved_all = !budget && found.stop == solvers::Stop::proved;
    if (!budget) least_.stop = found.stop;
    if (found.schedule.steps.empty()) {
      ended_ = ended_ || !budget;
      return false;
    }
    evaluate_again(solver_.name, rounded_.graph, found);
    const std::int64_t peak = found.peak;
    if (lowest_peak_ == 0 || found.peak < lowest_peak_) {
      lowest_peak_ = found.peak;
      latest_ = found.schedule;
    }
    met_.push_back(std::move(found.schedule));
    std::move(found.others.begin(), found.others.end(), std::back_inserter(met_));
    ended_ = proved_all || (!budget && found.stop == solvers::Stop::ended);
    return budget && peak <= *budget;
  }

  /// Calls the solver under budgets below the lowest peak. The difference between the lowest peak and the budget grows
  /// after each success and shrinks after each failure. Ends after kMisses failures. Ends after the first failure if
  /// lower() found no lower peak the last time, or if the graph is large. On large graphs, makes longer calls instead,
  /// because most of the time of a short call is setup.
  void lower(std::int64_t part) {
    const bool large = rounded_.graph.node_count() >= kManyNodes;
    const double first_step = large ? kFirstStepOfLarge : kFirstStep;
    if (large) part *= kLargeLonger;
    const std::int64_t before = lowest_peak_;
    double step = first_step / static_cast<double>(1 << (barren_ % kMisses));
    for (int left = barren_ > 0 || large ? 1 : kMisses; left > 0 && !ended_ && may_call(part);) {
      const std::int64_t gap = lowest_peak_ - least_.bound.value;
      if (gap <= 0) break;
      const auto below = static_cast<std::int64_t>(step * static_cast<double>(gap));
      if (call(lowest_peak_ - std::max<std::int64_t>(1, below), part)) {
        step = std::min(kStepGrowth * step, first_step);
      } else {
        step /= 2;
        --left;
      }
    }
    plan_met();
    barren_ = lowest_peak_ < before ? 0 : barren_ + 1;
  }

  /// Searches for a cheaper schedule if the lowest plan is clearly above the lowest peak, because a cheaper schedule
  /// can have a lower plan. Every second call of cheapen() uses the lowest peak as the budget; the others use the
  /// middle of the lowest peak and the lowest plan.
  void cheapen(std::int64_t part) {
    const std::int64_t above = least_.memory() - lowest_peak_;
    if (options_.peak_only || above <= lowest_peak_ / kNearPeak || !may_call(part)) return;
    between_ = !between_;
    call(lowest_peak_ + (between_ ? above / 2 : 0), part, false);
    plan_met();
  }

  /// Plans the schedule of lowest peak without reordering its steps, if this can give a plan that is lower than the
  /// lowest known plan.
  void plan_again(std::int64_t part) {
    if (options_.peak_only || done() || least_.memory() <= lowest_.first) return;
    solvers::PlanOptions options = planning();
    options.limit.work = std::min(options_.plan.limit.work, kPlanOfPart * part);
    solvers::PlanSolution planned = solvers::find_plan(problem_.graph, least_.lowest, options);
    keep(PlannedSchedule(problem_.graph, least_.lowest, std::move(planned.plan)), solver_.name);
  }

  /// Searches for a schedule and its addresses together, under budgets between the lowest peak and the lowest plan.
  void place(std::int64_t part) {
    const std::int64_t unit = options_.plan.alignment;
    const solvers::Scope& scope = options_.search.scope;
    if (part < kPlacedFrom || options_.peak_only || !solver_.can.any_means ||
        scope.order == solvers::OrderRule::stages || scope.max_occurrences == 1 || options_.plan.overlap_steps > 0 ||
        !solvers::can_search_placed(rounded_.graph))
      return;
    // can_search_placed() accepts only graphs without in-place nodes. On such graphs no plan is lower than its
    // schedule's peak, so budgets below the lowest peak are not tried.
    std::int64_t low = std::max(lowest_peak_, least_.bound.value);
    for (int i = 0; i < kTriesPlaced && may_call(part) && least_.schedule.length() <= kMostSteps; ++i) {
      const std::int64_t budget = (low + (least_.memory() - low) / 2) / unit * unit;
      if (budget < low || budget >= least_.memory()) return;
      std::vector<solvers::PlacedSchedule> starts{{least_.schedule, core::offsets_of(*least_.plan), 0}};
      if (latest_plan_) starts.push_back({latest_planned_, core::offsets_of(*latest_plan_), 0});
      const solvers::PlacedSolution found =
          solvers::search_placed(rounded_.graph, starts,
                                 {.budget = budget,
                                  .scope = scope,
                                  .limit = limit_of(part),
                                  .seed = options_.search.seed,
                                  .enough = std::numeric_limits<std::int64_t>::max()});
      watch_.charge(std::max<std::int64_t>(found.work, 1));
      if (!found.best || !solvers::can_be_planned(problem_.graph, found.best->schedule)) {
        low = budget + unit;
        continue;
      }
      core::Plan plan = plan_of(problem_.graph, *found.best, planning());
      keep(PlannedSchedule(problem_.graph, found.best->schedule, std::move(plan)), solver_.name);
    }
  }

  const Problem& problem_;
  const Problem& rounded_;
  const solvers::SolverInfo& solver_;
  const LeastBudgetOptions& options_;
  core::Stopwatch watch_;
  std::uint64_t anew_ = 0;
  Overrun planning_, searching_;

  LeastBudget least_;
  bool any_ = false;
  std::pair<std::int64_t, std::int64_t> lowest_;  ///< peak and cost of the schedule least_.lowest
  std::vector<core::Schedule> met_;
  std::set<std::pair<std::int64_t, std::int64_t>> planned_;
  core::Schedule latest_;         ///< the solver's schedule with the lowest peak
  std::int64_t lowest_peak_ = 0;  ///< lowest peak that the solver found, with sizes rounded up to the alignment
  /// The planned schedule of lowest peak, with its steps in the planned order.
  core::Schedule latest_planned_;
  std::optional<core::Plan> latest_plan_;

  bool ended_ = false;
  /// Whether cheapen() last used the middle of the lowest peak and the lowest plan as its budget.
  bool between_ = false;
  int barren_ = 0;  ///< number of consecutive rounds in which lower() found no lower peak
  int idle_ = 0;    ///< number of consecutive rounds that found no lower peak or plan
};

}  // namespace

KnownStart::KnownStart(solvers::SolveOptions& search, const PlannedSchedule* known) {
  if (known == nullptr || search.start != nullptr) return;
  search.start = &known->schedule;
  if (!known->plan) return;
  offsets_ = core::offsets_of(*known->plan);
  search.start_offsets = &offsets_;
}

std::int64_t least_budget_work(const core::Limit& limit) {
  if (limit.counts_work() || !std::isfinite(limit.seconds)) return limit.work;
  constexpr double kWorkPerSecond = 4.8e6;  // two cores need one to three seconds for this work
  // Rounding hides small differences of `seconds`, so that time spent before the search does not change the answer.
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
  if (baseline.memory() > budget) return std::nullopt;
  return baseline;
}

LeastBudget least_budget_of_steps(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                                  const LeastBudgetOptions& options) {
  LeastBudget least = LeastBudgetSearch(problem, rounded, solver, options).run();
  if (!problem.graph.host_memory()) return least;
  // Bounds that solvers prove hold only for schedules without transfers. So the result gets the bound that Problem
  // computes for all schedules.
  least.bound = {options.peak_only ? problem.lower_bound : rounded.plan_bound(), solvers::kAnySchedule};
  if (least.stop == solvers::Stop::proved && !least.proved()) least.stop = solvers::Stop::ended;
  return least;
}

LeastBudget least_known(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                        std::optional<LeastBudget> known, const LeastBudgetOptions& options) {
  const core::Stopwatch watch(options.search.limit);
  const solvers::SolverInfo& all = solvers::find_solver("auto");
  LeastBudgetOptions own = options;
  own.search.limit.work = least_budget_work(options.search.limit);
  if (!solver.can.any_means) own.search.limit.seconds /= 2;
  LeastBudget least = known ? *known : find_least_budget(problem, rounded, solver, own);
  if (known && (!problem.budget || least.memory() > *problem.budget))
    lower_with_transfers(problem, rounded, own, own.search.limit, least);
  const bool proved = least.proved() && least.bound.scope.contains(options.search.scope);
  const bool enough = proved || !problem.budget || least.memory() <= *problem.budget;
  if (enough || solver.can.any_means || !all.honours(options.search.scope)) return least;
  LeastBudgetOptions others = options;
  others.search.own.clear();
  others.search.limit.work = least_budget_work(options.search.limit);
  others.search.limit.seconds = watch.rest().seconds;
  LeastBudget other = find_least_budget(problem, rounded, all, others);
  return other.memory() < least.memory() ? other : least;
}

}  // namespace cairn::fit
