#include "cairn/solvers/fit/fit_to_budget.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/front.h"
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/fit/internal/overrun.h"
#include "cairn/solvers/fit/internal/placed_plan.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/solvers/remat/anneal/placed_search.h"

namespace cairn::fit {
namespace {

/// The combined results of several calls of a solver, and the steps that call other searches. The budget of each call
/// is at most fit.budget plus the problem's plan_slack.
class Fitting {
 public:
  Fitting(const Problem& problem, const Problem& rounded, const FitOptions& options, core::Stopwatch& watch)
      : problem_(problem), rounded_(rounded), options_(options), watch_(watch) {
    fit.budget = problem.budget.value();
    fit.least = options.secured;
    plan_work_ = options.plan.limit.work;
  }

  Fit fit;

  /// Plans a schedule of the solver, and keeps it if it is the best so far. Takes at most `most_seconds`. Returns the
  /// height of the plan in bytes. Returns nothing if the user pressed Ctrl-C and the schedule is too long to be planned
  /// quickly.
  std::optional<std::int64_t> offer(solvers::Solution& solution, double most_seconds = core::Limit().seconds) {
    constexpr std::int64_t kQuicklyPlanned = 20'000;  // largest number of steps that are planned even after Ctrl-C
    if (watch_.interrupted() && solution.schedule.length() > kQuicklyPlanned) {
      if (!fit.plan) take(solution);
      return std::nullopt;
    }
    // A plan gets at most a quarter of the remaining time, because further plans and searches can follow.
    const solvers::PlanOptions planning = this->planning(std::min(most_seconds, watch_.rest().seconds / 4));
    core::Plan plan;
    if (options_.search.scope.order == solvers::OrderRule::free) {
      auto [schedule, found] = solvers::plan_some_order(problem_.graph, solution.schedule, planning);
      if (schedule.steps != solution.schedule.steps) {
        solution.schedule = std::move(schedule);
        solution.peak = core::evaluate(rounded_.graph, solution.schedule).peak;
      }
      plan = std::move(found.plan);
    } else {
      plan = solvers::plan_memory(problem_.graph, solution.schedule, planning);
    }
    const std::int64_t bytes = plan.bytes;
    const bool fits = bytes <= fit.budget;
    const bool better =
        !fit.plan || (fits ? !fit.fits() || solution.cost < fit.solution.cost : !fit.fits() && bytes < fit.plan->bytes);
    if (better) {
      take(solution);
      fit.plan = std::move(plan);
    }
    return bytes;
  }

  /// Keeps the schedule from which the search starts, with its known plan if that fits. If neither that plan nor the
  /// one of offer() fits, plans the schedule once more and more carefully, because the caller often knows that a plan
  /// fits (unless options.secure_share is 0).
  void offer_start(solvers::Solution& known) {
    constexpr double kShare = 0.3;  // fraction of the remaining time for the careful plan
    std::optional<core::Plan> plan = plan_of_start(problem_.graph, options_.search, options_.plan.alignment);
    if (!plan || plan->bytes > fit.budget) {
      offer(known);
      if (fit.fits() || options_.secure_share == 0 || watch_.interrupted()) return;
      solvers::PlanOptions careful = planning(watch_.rest().seconds * kShare);
      careful.limit.work = std::min(plan_work_, core::Limit::kAnyWork / kCareful) * kCareful;
      plan = solvers::plan_memory(problem_.graph, *options_.search.start, careful);
      if (plan->bytes > fit.budget) return;
      known = evaluated(*options_.search.start);
    }
    take(known);
    fit.plan = std::move(plan);
  }

  solvers::Solution evaluated(const core::Schedule& schedule) const {
    return evaluated(schedule, core::evaluate(rounded_.graph, schedule));
  }
  static solvers::Solution evaluated(const core::Schedule& schedule, const core::Evaluation& evaluation) {
    solvers::Solution solution;
    solution.schedule = schedule;
    solution.peak = evaluation.peak;
    solution.cost = evaluation.cost;
    return solution;
  }

  /// Calls find_least_budget() to find a schedule that fits, if nothing fits yet; only on the first call. The result is
  /// stored in fit.least, and take_secured() makes it the answer if nothing better is found. Searches do not start from
  /// it, because its peak is very low and its cost very high. A search that starts from a cheap schedule above the
  /// budget finds better schedules.
  void secure(const solvers::SolverInfo& solver) {
    if (options_.secure_share == 0 || fit.least || fit.fits() || watch_.expired_now()) return;
    LeastBudgetOptions options{.search = options_.search, .plan = options_.plan, .enough = fit.budget};
    // find_least_budget() limits the work of its plans itself. With a lower limit, it might not find the budget again
    // that `cairn info` has printed.
    options.plan.limit = {};
    if (!options.search.limit.counts_work()) {    // so that a repetition gives the same result
      constexpr std::int64_t kLeast = 1'200'000;  // work of about a quarter of a second
      options.search.limit.work = std::max(kLeast, least_budget_work(options.search.limit));
    }
    options.search.limit.seconds = watch_.rest().seconds * options_.secure_share;
    fit.least = find_least_budget(problem_, rounded_, solver, options);
    fit.solution.work += fit.least->work;
  }

  /// Makes the schedule of secure() the answer if no schedule fits yet and its plan is lower than the plan of the
  /// present answer. Returns whether this gave an answer that fits.
  bool take_secured() {
    if (fit.fits() || !fit.least || !fit.least->plan || (fit.plan && fit.least->memory() >= fit.plan->bytes))
      return false;
    take(evaluated(fit.least->schedule));
    fit.plan = fit.least->plan;
    return fit.fits();
  }

  /// Makes options.fallback the answer if nothing else fits.
  void take_fallback() {
    const PlannedSchedule* const known = options_.fallback;
    if (fit.fits() || known == nullptr || known->memory() > fit.budget) return;
    take(evaluated(known->schedule));
    fit.plan = known->plan;
  }

  /// Searches for a schedule and its addresses together, after the plan of the schedule `first` needed `planned` bytes
  /// and exceeded the budget. First makes the schedule of secure() the answer, even if it is expensive. Next searches
  /// for a cheaper schedule of about the same peak. The joint search starts from both schedules.
  void place(const solvers::SolverInfo& solver, const core::Schedule& first, std::int64_t planned) {
    plan_work_ = std::min(plan_work_, core::Limit::kAnyWork / kCareful) * kCareful;
    secure(solver);
    take_secured();
    std::vector<core::Schedule> starts;
    if (fit.fits()) {
      starts.push_back(aim_cheaply(solver, first, planned));
      if (fit.solution.schedule.steps != starts.front().steps) starts.push_back(fit.solution.schedule);
    } else {
      starts.push_back(fit.least ? fit.least->lowest : first);
    }
    search_placed(starts);
  }

  /// Searches for a schedule that is cheaper than the present answer, which fits. The plan of `first` needed `planned`
  /// bytes and exceeded the budget. So the budget of the search is lower by this excess, but not below the peak of the
  /// present answer. Searches from `first` and, if that fails, from the present answer. If both searches fail, returns
  /// `first`.
  core::Schedule aim_cheaply(const solvers::SolverInfo& solver, const core::Schedule& first, std::int64_t planned) {
    constexpr double kShare = 0.4, kMore = 1.1;
    constexpr std::int64_t kClose = 50;
    // A lower bound on the cost holds for the task only if it was found under the problem's own budget. So if the plan
    // exceeds this budget only slightly, a single search is made under the budget itself.
    const bool close = planned - fit.budget < fit.budget / kClose;
    const auto more = static_cast<std::int64_t>(kMore * static_cast<double>(planned - fit.budget));
    solvers::SolveOptions search = options_.search;
    search.budget = fit.budget + rounded_.plan_slack;
    if (!close) search.budget = std::max(*search.budget - more, fit.solution.peak);
    for (const core::Schedule* start : {&first, &std::as_const(fit.solution.schedule)}) {
      search.limit = watch_.share(kShare);
      search.start = start;
      solvers::Solution solution = call(solver, search);
      if (meets(solution, search.budget)) {
        offer(solution);
        return std::move(solution.schedule);
      }
      if (close || watch_.expired_now()) break;
    }
    return first;
  }

  /// Calls the solver once. FitOptions::max_rounds does not count the call.
  solvers::Solution call(const solvers::SolverInfo& solver, const solvers::SolveOptions& search) {
    solvers::Solution solution = solver.solve(rounded_.graph, search);
    learn(solution, *search.budget);
    ++fit.rounds;
    return solution;
  }

  /// Searches for a schedule and its addresses together in the remaining time, starting from the schedules `from`.
  void search_placed(const std::vector<core::Schedule>& from) {
    // Fraction of the remaining time for this search. The rest is for checking the result and, if nothing fits yet, for
    // other searches.
    const double most = fit.fits() ? 0.98 : 0.7;
    std::vector<solvers::PlacedSchedule> starts;
    for (const core::Schedule& schedule : from) {
      const bool known = fit.plan && schedule.steps == fit.solution.schedule.steps;
      const core::Plan plan =
          known ? *fit.plan : solvers::plan_memory(problem_.graph, schedule, planning(watch_.rest().seconds / 8));
      starts.push_back(placed_as(schedule, plan));
    }
    solvers::PlacedSearchOptions search{.budget = fit.budget / options_.plan.alignment * options_.plan.alignment,
                                        .scope = options_.search.scope,
                                        .limit = watch_.share(most),
                                        .seed = options_.search.seed,
                                        .enough = fit.solution.cost_bound.value};
    search.found = [&](const solvers::PlacedSchedule& one) {
      if (options_.search.progress) options_.search.progress({fit.budget, one.cost, watch_.seconds()});
    };
    const solvers::PlacedSolution solved = solvers::search_placed(rounded_.graph, starts, search);
    const std::optional<solvers::PlacedSchedule>& found = solved.best;
    fit.solution.work += solved.work;
    fit.solution.timed_out = solved.timed_out;
    fit.solution.stop = watch_.interrupted() ? solvers::Stop::interrupted
                        : solved.timed_out   ? solvers::Stop::limit
                                             : solvers::Stop::stagnated;
    if (!found || (fit.fits() && found->cost >= fit.solution.cost)) return;
    if (!solvers::can_be_planned(problem_.graph, found->schedule)) return;
    core::Plan plan = plan_of(problem_.graph, *found, planning(watch_.rest().seconds));
    take(evaluated(found->schedule));
    fit.plan = std::move(plan);
  }

  /// Plans the schedules of Solution::others, the cheapest first, until one of them fits or the next one is not cheaper
  /// than the present answer, which fits. Takes at most the fraction `share` of the remaining time, or kMoment seconds
  /// after Ctrl-C.
  void offer_others(const std::vector<core::Schedule>& others, double share = 1) {
    constexpr double kMoment = 0.3;  // seconds that are spent after Ctrl-C
    const double end =
        watch_.seconds() + (watch_.interrupted() ? kMoment : share * std::max(0.0, watch_.rest().seconds));
    for (const core::Schedule& schedule : others) {
      const core::Evaluation evaluation = core::evaluate(rounded_.graph, schedule);
      if (watch_.seconds() >= end || (fit.fits() && evaluation.cost >= fit.solution.cost)) return;
      if (!tried_.insert(evaluation.cost).second || !evaluation.valid() ||
          evaluation.peak > fit.budget + rounded_.plan_slack)
        continue;
      solvers::Solution other = evaluated(schedule, evaluation);
      offer(other, end - watch_.seconds());
    }
  }

  /// Adds the bounds and statistics of one call of the solver. `budget` was the budget of this call.
  void learn(const solvers::Solution& solution, std::int64_t budget) {
    solvers::Solution& all = fit.solution;
    if (fit.rounds == 1) all.scope = solution.scope;
    if (solution.peak_bound.value > all.peak_bound.value) all.peak_bound = solution.peak_bound;
    // A call under a lower budget leaves out schedules that are within fit.budget, so its cost bound does not hold for
    // them.
    if (budget == fit.budget + rounded_.plan_slack && solution.cost_bound.value > all.cost_bound.value)
      all.cost_bound = solution.cost_bound;
    if (solution.least_peak > 0 && (all.least_peak == 0 || solution.least_peak < all.least_peak)) {
      all.least_peak = solution.least_peak;
      all.least_peak_by = solution.least_peak_by;
    }
    all.tradeoffs.insert(all.tradeoffs.end(), solution.tradeoffs.begin(), solution.tradeoffs.end());
    all.work += solution.work;
    all.timed_out = solution.timed_out;
    all.stop = solution.stop;
  }

  /// Makes the schedule the answer, whether its plan fits or not.
  void take(const solvers::Solution& solution) {
    fit.solution.schedule = solution.schedule;
    fit.solution.peak = solution.peak;
    fit.solution.cost = solution.cost;
    fit.solution.best_seconds = watch_.seconds();
  }

 private:
  // Factor by which the work limit of a plan is raised where few plans are made, and the result depends on each.
  static constexpr std::int64_t kCareful = 3;

  solvers::PlanOptions planning(double seconds) const {
    solvers::PlanOptions planning = options_.plan;
    planning.guard_bytes = 0;
    planning.capacity = fit.budget;
    planning.limit.work = plan_work_;
    planning.limit.stop = options_.search.limit.stop;
    planning.limit.seconds = std::min(planning.limit.seconds, std::max(0.0, seconds));
    return planning;
  }

  const Problem& problem_;
  const Problem& rounded_;
  const FitOptions& options_;
  core::Stopwatch& watch_;
  std::int64_t plan_work_ = 0;    // work limit of a single plan
  std::set<std::int64_t> tried_;  // costs of the schedules that offer_others() has tried
};

/// Returns whether to search for a schedule and its addresses together, starting from the given schedule. Requires the
/// following:
/// - The solver may combine several algorithms (Capabilities::any_means).
/// - search_placed() accepts the graph and the scope.
/// - The graph has at least kFewest nodes. On smaller graphs, slightly lower budgets give better results.
/// - The schedule is not too long.
bool may_place(const solvers::SolverInfo& solver, const core::Graph& graph, const solvers::Scope& scope,
               const core::Schedule& schedule) {
  constexpr core::NodeId kFewest = 300;
  constexpr std::int64_t kLongest = 20'000;  // largest number of steps of the schedule
  return solver.can.any_means && scope.order != solvers::OrderRule::stages && graph.node_count() >= kFewest &&
         schedule.length() <= kLongest && solvers::can_search_placed(graph);
}

/// Chooses the budget of the first call. On large graphs, the first call takes most of the time. If the plan of its
/// schedule exceeded the problem's budget, no time would be left for another call. Plans need more than peaks if many
/// tensors of very different sizes are live at once. So for large graphs of this kind, the first budget is slightly
/// below the problem's budget.
std::int64_t first_budget(const Problem& problem, const solvers::SolverInfo& solver) {
  constexpr core::NodeId kLarge = 5000;
  constexpr double kPart = 0.964;
  const core::Graph& graph = problem.graph;
  if (!solver.can.any_means || graph.node_count() < kLarge || !solvers::can_search_placed(graph))
    return *problem.budget;
  std::set<std::int64_t> sizes;
  for (core::ValueId x = 0; x < graph.value_count(); ++x) sizes.insert(graph.value_size(x));
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.backward(v)) return *problem.budget;  // lifetimes in training graphs are nested, so plans are low
  }
  constexpr std::size_t kFew = 8;
  if (sizes.size() < kFew) return *problem.budget;
  return static_cast<std::int64_t>(kPart * static_cast<double>(*problem.budget));
}

/// Least fraction of the whole time that must be left for another call of the solver.
constexpr double kWorthwhile = 0.05;
/// Fraction of the remaining time in which offer_others() plans schedules before place() is called.
constexpr double kShareOfOthers = 0.05;
/// Estimated time of one more plan, in seconds per node.
constexpr double kPlanSeconds = 4e-5;

/// Calls the solver under one budget after another. Lowers the budget until a plan fits or the solver finds no
/// schedule. Afterwards tries budgets halfway between unmet_ and high_. unmet_ is the highest budget below which no
/// call can help; high_ is the lowest budget for which the solver's schedule had a plan that did not fit.
class BudgetSearch {
 public:
  BudgetSearch(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
               const FitOptions& options)
      : problem_(problem),
        rounded_(rounded),
        solver_(solver),
        options_(options),
        watch_(options.search.limit),
        fitting_(problem, rounded, options, watch_) {
    fit_.solution.cost_bound = {problem.baseline.cost, solvers::kAnySchedule};  // cost of running every node once
    if (search_.start == nullptr) return;
    solvers::Solution known = fitting_.evaluated(*search_.start);
    if (known.peak <= peak_budget_) fitting_.offer_start(known);
  }

  Fit run() {
    while (goes_on() && !watch_.interrupted()) {
      if (fit_.rounds > 0) {
        fitting_.secure(solver_);
        if (watch_.rest().seconds < overrun_.seconds()) break;
      }
      solvers::Solution solution = call();
      const Next next = meets(solution, budget_) ? after_met(solution) : after_unmet(solution);
      if (next == Next::end) break;
      if (next == Next::narrow) narrow();
    }
    return finish();
  }

 private:
  enum class Next : std::uint8_t { again, narrow, end };

  bool goes_on() const {
    if (round_ == 0) return true;
    // On large graphs, a single plan can take longer than the fraction kWorthwhile of the time.
    const double plan = fit_.plan ? kPlanSeconds * problem_.graph.node_count() : 0;
    const double least = std::max(kWorthwhile * options_.search.limit.seconds, plan) + overrun_.seconds();
    return round_ < options_.max_rounds && budget_ > 0 && watch_.rest().seconds >= least;
  }

  solvers::Solution call() {
    ++round_;
    ++fit_.rounds;
    search_.budget = budget_;
    search_.limit.seconds = overrun_.before(watch_.rest()).seconds * share_;
    const double begun = watch_.seconds();
    solvers::Solution solution = solver_.solve(rounded_.graph, search_);
    overrun_.learn(search_.limit, watch_.seconds() - begun);
    fitting_.learn(solution, budget_);
    if (budget_ == peak_budget_) status_ = solution.status;
    // After a short first call without a proof, a call with more time can find more.
    probing_ = fit_.rounds == 1 && options_.first_share > 0 && solution.stop != solvers::Stop::proved;
    more_time_ = (solution.timed_out || probing_) && !search_.limit.counts_work();
    return solution;
  }

  Next after_unmet(solvers::Solution& solution) {
    if (!high_ && !fit_.plan) fitting_.take(solution);
    // The first budget was below the problem's budget, so this failure says nothing about the problem's budget, which
    // is tried next.
    if (lowered_ && fit_.rounds == 1) {
      latest_ = std::move(solution.schedule);
      search_.start = latest_.steps.empty() ? options_.search.start : &latest_;
      budget_ = peak_budget_;
      share_ = options_.share;
      return Next::again;
    }
    if (solution.status == solvers::Status::infeasible && !high_) return Next::end;
    // The solver found nothing within the budget. If secure() has found a schedule whose plan fits, the search
    // continues from that schedule.
    const bool from_secured = fit_.rounds > 1 && fitting_.take_secured();
    if (!high_ && !more_time_ && !from_secured) return Next::end;
    if (probing_) share_ = options_.share;
    if (high_) unmet_ = std::max(unmet_, budget_);
    latest_ = std::move(solution.schedule);
    return Next::narrow;
  }

  Next after_met(solvers::Solution& solution) {
    const std::optional<std::int64_t> planned = fitting_.offer(solution);
    if (!planned) return Next::end;
    const bool fits = *planned <= fit_.budget;
    if (fit_.rounds == 1) share_ = fits ? options_.later_share : options_.share;
    latest_ = std::move(solution.schedule);
    if (fits) return after_fit();
    if (!placed_ && may_place(solver_, rounded_.graph, search_.scope, latest_)) {
      placed_ = true;
      fitting_.offer_others(solution.others, kShareOfOthers);
      fitting_.place(solver_, latest_, *planned);
      if (fit_.fits()) return Next::end;
    }
    fitting_.offer_others(solution.others);
    return lower(*planned);
  }

  Next after_fit() {
    unmet_ = std::max(unmet_, budget_);
    if (lowered_ && fit_.rounds == 1) {
      budget_ = peak_budget_;
      latest_ = fit_.solution.schedule;
      search_.start = &latest_;
      share_ = options_.later_share;
      return Next::again;
    }
    return high_ || more_time_ ? Next::narrow : Next::end;
  }

  /// Lowers the budget by the number of bytes by which the plan exceeds fit.budget. If the new budget would be below
  /// the lower bound on the peak, takes the middle of the old budget and the bound instead.
  Next lower(std::int64_t planned) {
    high_ = budget_;
    budget_ -= std::max(planned - fit_.budget, least_cut_);
    const std::int64_t lowest = std::max(rounded_.lower_bound, fit_.solution.peak_bound.value);
    if (lowest > budget_ && lowest + 1 < *high_) budget_ = lowest + (*high_ - lowest) / 2;
    if (budget_ <= unmet_ || (unmet_ != 0 && fit_.fits())) return Next::narrow;
    search_.start = &latest_;
    return Next::again;
  }

  void narrow() {
    if (fit_.fits()) latest_ = fit_.solution.schedule;
    search_.start = latest_.steps.empty() ? options_.search.start : &latest_;
    if (!high_) return;
    if (*high_ - unmet_ <= 2 * least_cut_) {
      // No other budget is left to try, but another seed gives another schedule of the same peak, whose plan can be
      // lower.
      ++search_.seed;
      unmet_ = 0;
      budget_ = *high_ - least_cut_;
    } else {
      budget_ = unmet_ + (*high_ - unmet_) / 2;
    }
  }

  Fit finish() {
    if (status_ != solvers::Status::infeasible) fitting_.secure(solver_);
    fitting_.take_secured();
    fitting_.take_fallback();
    solvers::Solution& all = fit_.solution;
    all.peak_bound.value = std::max<std::int64_t>(0, all.peak_bound.value - rounded_.plan_slack);
    all.tradeoffs = solvers::undominated(all.tradeoffs);
    all.status = status_;
    if (watch_.interrupted() && status_ != solvers::Status::infeasible) all.stop = solvers::Stop::interrupted;
    const bool proved = fit_.fits() && all.cost == all.cost_bound.value;
    if (fit_.fits()) all.status = proved ? solvers::Status::optimal : solvers::Status::feasible;
    if (proved) {
      all.stop = solvers::Stop::proved;
    } else if (all.stop == solvers::Stop::proved && all.status != solvers::Status::infeasible) {
      // The solver's proof holds for a lower budget, or for peaks instead of plans. So it does not prove this answer to
      // be the best.
      const bool spent = watch_.rest().seconds < kWorthwhile * options_.search.limit.seconds;
      all.stop = spent ? solvers::Stop::limit : solvers::Stop::ended;
    }
    fit_.seconds = watch_.seconds();
    return std::move(fit_);
  }

  double first_share() const {
    if (lowered_) return share_for_search(problem_.graph, options_.search.limit.seconds);
    return options_.first_share > 0 ? options_.first_share : options_.share;
  }

  const Problem& problem_;
  const Problem& rounded_;
  const solvers::SolverInfo& solver_;
  const FitOptions& options_;
  core::Stopwatch watch_;
  Fitting fitting_;
  Fit& fit_ = fitting_.fit;
  solvers::SolveOptions search_ = options_.search;
  // Largest peak of a schedule whose plan can fit into the problem's budget.
  const std::int64_t peak_budget_ = fit_.budget + rounded_.plan_slack;
  // Least amount by which the budget is lowered.
  const std::int64_t least_cut_ = std::max(fit_.budget / 200, options_.plan.alignment);
  std::int64_t budget_ = first_budget(problem_, solver_) + rounded_.plan_slack;  // budget of the next call
  // Whether the first budget is lower than the problem's budget.
  const bool lowered_ = budget_ < peak_budget_;
  // Fraction of the remaining time for the next call.
  double share_ = first_share();
  // Highest budget for which no further call is needed, nor for any lower budget. Either the solver found no schedule
  // within this budget, or its schedule had a plan that fits.
  std::int64_t unmet_ = 0;
  std::optional<std::int64_t> high_;  // lowest budget for which the solver's schedule had a plan that did not fit
  core::Schedule latest_;
  solvers::Status status_ = solvers::Status::not_found;  // status under the budget peak_budget_
  Overrun overrun_;                                      // seconds by which calls exceed their limit
  bool placed_ = false;                                  // whether place() was called
  // - probing_: whether the last call was a short first call.
  // - more_time_: whether more time could help the solver.
  bool probing_ = false, more_time_ = false;
  int round_ = 0;
};

}  // namespace

Fit fit_to_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                  const FitOptions& options) {
  return BudgetSearch(problem, rounded, solver, options).run();
}

double share_for_search(const core::Graph& graph, double seconds) {
  // A plan takes about 5 us per step. kSecondsOfNode is larger, because a schedule has more steps than the graph has
  // nodes, and more than one plan can be needed.
  constexpr double kSecondsOfNode = 2e-5, kMost = 0.9, kLeast = 0.3;
  return std::clamp(1 - kSecondsOfNode * graph.node_count() / std::max(seconds, 1e-3), kLeast, kMost);
}

FitOptions patient(const core::Graph& graph, solvers::SolveOptions search, solvers::PlanOptions plan) {
  // Work limit of one plan. It corresponds to only about a quarter of a second, because several schedules are planned.
  constexpr std::int64_t kWork = 150'000'000;
  plan.limit.work = std::min(plan.limit.work, kWork);
  const double most = share_for_search(graph, search.limit.seconds);
  const int rounds = search.limit.counts_work() ? 6 : 16;  // a round gets all the work, but only a part of the time
  const double secure_share = search.limit.counts_work() ? 1 : 0.92;
  return {.search = std::move(search),
          .plan = std::move(plan),
          .max_rounds = rounds,
          .share = std::min(0.5, most),
          .later_share = std::min(0.75, most),
          .first_share = 0.05,
          .secure_share = secure_share};
}

}  // namespace cairn::fit
