// Finds a schedule whose plan fits into a budget (fit_to_budget.h). Solvers only limit the peak of a schedule, and a
// plan can need more bytes than the peak. So a solver is called with several budgets, and the schedules found are
// planned.

#include "cairn/solvers/fit/fit_to_budget.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/support/admissible.h"
#include "cairn/solvers/common/support/front.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/fit/internal/fit_with_transfers.h"
#include "cairn/solvers/fit/internal/least_with_transfers.h"
#include "cairn/solvers/fit/internal/overrun.h"
#include "cairn/solvers/fit/internal/placed_plan.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/solvers/remat/anneal/placed_search.h"

namespace cairn::fit {
namespace {

// Fractions of the remaining time that one part of the search gets.
constexpr double kShareOfPlan = 0.25;        // one plan: further plans and searches can follow
constexpr double kShareOfStart = 0.3;        // the careful plan of the schedule from which the search starts
constexpr double kShareOfCheap = 0.4;        // each call of the solver in aim_cheaply()
constexpr double kShareOfBisection = 0.08;   // each call of bisect(), and each plan of its result
constexpr double kShareOfPlaced = 0.98;      // search_placed(), if a schedule fits: the rest is for checking its result
constexpr double kShareOfPlacedUnmet = 0.7;  // search_placed(), if none fits: other searches follow
constexpr double kShareOfOthers = 0.05;      // plans of Solution::others after a call
constexpr double kShareWithTransfers = 0.4;  // the plan of a start with transfers, and the search for one that fits
// Time.
constexpr double kMoment = 0.3;        // seconds after Ctrl-C for plans of schedules that are known
constexpr double kWorthwhile = 0.05;   // the solver is called again only if this fraction of the whole time is left
constexpr double kPlanSeconds = 4e-5;  // estimated time of one more plan, in seconds per node
// Work.
constexpr std::int64_t kCareful = 3;               // factor on the work of a plan in phases that depend on each plan
constexpr std::int64_t kLeastSecured = 1'200'000;  // least work of the search for a schedule that is sure to fit
// Calls, budgets and costs.
constexpr int kBisections = 6;           // largest number of calls of bisect()
constexpr int kBisectionsUnmet = 3;      // the same, as long as no plan has fitted: other searches need the time
constexpr std::int64_t kClosest = 250;   // bisect() ends if its two budgets differ by less than a 250th
constexpr double kBelow = 1.1;           // a budget is lowered by this multiple of the bytes by which a plan exceeds it
constexpr std::int64_t kClosePlan = 50;  // a plan is close to the budget if it exceeds it by less than a 50th
constexpr std::int64_t kFarAbove = 2;    // multiple of the budget: no addresses are found for schedules above it
// Sizes of graphs and schedules.
constexpr core::NodeId kFewestPlaced = 200;      // nodes: on smaller graphs, calls with lower budgets are better
constexpr std::int64_t kLongestPlaced = 20'000;  // steps: longer schedules take search_placed() too long
constexpr core::NodeId kLargeGraph = 5000;       // nodes: the first call takes most of the time
constexpr double kFirstOfLarge = 0.964;          // first budget of such a graph, as a fraction of the problem's budget
constexpr std::size_t kFewSizes = 8;             // with fewer different sizes, plans need little more than the peak

/// Collects the results of several calls of a solver in `fit`, and calls other searches.
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
  /// height of the plan in bytes, or nothing if Ctrl-C was pressed and the schedule is too long to be planned quickly.
  std::optional<std::int64_t> offer(solvers::Solution& solution, double most_seconds = core::Limit().seconds) {
    if (watch_.interrupted() && !is_planned_quickly(solution.schedule)) {
      if (!fit.plan) take(solution);
      return std::nullopt;
    }
    const solvers::PlanOptions planning = this->planning(std::min(most_seconds, watch_.rest().seconds * kShareOfPlan));
    auto [schedule, planned] = plan_within(options_.search.scope, problem_.graph, solution.schedule, planning);
    if (schedule != solution.schedule) {
      solution.schedule = std::move(schedule);
      solution.peak = core::evaluate(rounded_.graph, solution.schedule).peak;
    }
    const std::int64_t bytes = planned.plan.bytes;
    if (fit.is_improved_by(bytes, solution.cost)) take(solution, std::move(planned.plan));
    return bytes;
  }

  /// Keeps the schedule from which the search starts. If neither its known plan nor the plan that offer() makes fits,
  /// plans the schedule more carefully, because the caller often knows that a plan fits. There is no careful plan if
  /// options.secure_share is 0.
  void offer_start(solvers::Solution& known) {
    std::optional<core::Plan> plan = plan_of_start(problem_.graph, options_.search, options_.plan);
    if (!plan || plan->bytes > fit.budget) {
      offer(known);
      if (fit.fits() || options_.secure_share == 0 || watch_.interrupted()) return;
      solvers::PlanOptions careful = planning(watch_.rest().seconds * kShareOfStart);
      careful.limit.work = std::min(plan_work_, core::Limit::kAnyWork / kCareful) * kCareful;
      plan = solvers::plan_memory(problem_.graph, *options_.search.start, careful);
      if (plan->bytes > fit.budget) return;
      known = evaluated(*options_.search.start);
    }
    take(known, std::move(plan));
  }

  solvers::Solution evaluated(const core::Schedule& schedule) const {
    return evaluated(schedule, core::evaluate(rounded_.graph, schedule));
  }
  static solvers::Solution evaluated(const core::Schedule& schedule, const core::Evaluation& evaluation) {
    return {.schedule = schedule, .peak = evaluation.peak, .cost = evaluation.cost};
  }

  /// Calls find_least_budget() if no schedule fits yet, at most once. take_secured() makes its result, fit.least, the
  /// answer if nothing better is found. Searches do not start from this result, because its cost is very high. Searches
  /// that start from a cheap schedule above the budget find better schedules.
  void secure(const solvers::SolverInfo& solver) {
    if (options_.secure_share == 0 || fit.least || fit.fits() || watch_.expired_now()) return;
    LeastBudgetOptions options{.search = options_.search, .plan = options_.plan, .enough = fit.budget};
    // find_least_budget() limits the work of its plans itself. A lower limit could prevent it from reaching the budget
    // that `cairn info` has printed.
    options.plan.limit = {};
    if (!options.search.limit.counts_work()) {
      options.search.limit.work = std::max(kLeastSecured, least_budget_work(options.search.limit));
    }
    options.search.limit.seconds = watch_.rest().seconds * options_.secure_share;
    fit.least = least_budget_of_steps(problem_, rounded_, solver, options);
    fit.solution.work += fit.least->work;
  }

  /// Makes the result of secure() the answer if no schedule fits yet and the result's plan is lower than the plan of
  /// the current answer. Returns true if the answer was replaced and its plan now fits, otherwise false.
  bool take_secured() {
    if (fit.fits() || !fit.least || !fit.least->plan || (fit.plan && fit.least->memory() >= fit.plan->bytes))
      return false;
    take(evaluated(fit.least->schedule), fit.least->plan);
    return fit.fits();
  }

  void take_fallback() {
    const PlannedSchedule* const known = options_.fallback;
    if (fit.fits() || known == nullptr || known->memory() > fit.budget) return;
    take(evaluated(known->schedule), known->plan);
  }

  /// Searches for a schedule and its addresses together, because the plan of the schedule `first` needs `planned`
  /// bytes, which exceeds fit.budget. First makes the result of secure() the answer, even if it is expensive. If this
  /// answer fits, looks for a cheaper one by bisect() or, if bisect() finds none, by aim_cheaply(). Finally starts the
  /// joint search from the answer and from a cheaper schedule whose plan does not fit.
  void place(const solvers::SolverInfo& solver, const core::Schedule& first, std::int64_t planned) {
    plan_work_ = std::min(plan_work_, core::Limit::kAnyWork / kCareful) * kCareful;
    secure(solver);
    take_secured();
    std::vector<core::Schedule> starts;
    if (fit.fits()) {
      const std::int64_t secured = fit.solution.cost;
      starts.push_back(bisect(solver, rounded_.peak_within(fit.budget), first, planned));
      if (fit.solution.cost == secured) starts.front() = aim_cheaply(solver, first, planned);
      if (fit.solution.schedule.steps != starts.front().steps) starts.push_back(fit.solution.schedule);
    } else {
      starts.push_back(fit.least ? fit.least->lowest : first);
    }
    search_placed(starts);
  }

  /// Calls the solver to find a schedule that is cheaper than the current answer, which fits. `planned` is the number
  /// of bytes that the plan of `first` needs, which is more than fit.budget. The solver looks at peaks and not at
  /// plans, so it gets a budget that is lower than fit.budget by kBelow times the excess (`planned` - fit.budget), but
  /// not below the peak of the current answer. The solver starts from `first` and, if it finds no schedule within this
  /// budget, once more from the current answer.
  /// Returns the schedule found or, if both attempts fail, `first`.
  core::Schedule aim_cheaply(const solvers::SolverInfo& solver, const core::Schedule& first, std::int64_t planned) {
    // The solver also returns a lower bound on the cost. This bound holds for the problem only if the solver's budget
    // was not lower than the problem's budget (fit.budget). So if `planned` exceeds fit.budget by less than 2%, the
    // solver is called with the problem's budget, and only once, from `first`.
    const bool close = planned - fit.budget < fit.budget / kClosePlan;
    solvers::SolveOptions search = options_.search;
    search.budget = rounded_.peak_within(fit.budget);
    if (!close) search.budget = std::max(below(*search.budget, planned), fit.solution.peak);
    for (const core::Schedule* start : {&first, &std::as_const(fit.solution.schedule)}) {
      search.limit = watch_.share(kShareOfCheap);
      search.start = start;
      solvers::Solution solution = call(solver, search);
      if (meets(solution, search.budget)) {
        const std::optional<std::int64_t> bytes = offer(solution);
        if (bytes && *bytes > fit.budget) return bisect(solver, *search.budget, std::move(solution.schedule), *bytes);
        return std::move(solution.schedule);
      }
      if (close || watch_.expired_now()) break;
    }
    return first;
  }

  /// Looks for the highest budget at which the plan of the solver's schedule fits. `schedule` was found within
  /// `budget`, and its plan needs `planned` bytes, which exceeds fit.budget. As long as no plan fits, the next budget
  /// is the one at which a plan would fit if it exceeded the peak by the same fraction as the last plan did. Then
  /// bisects between the highest budget with a plan that fits and the lowest without. Returns the schedule of the
  /// latter.
  core::Schedule bisect(const solvers::SolverInfo& solver, std::int64_t budget, core::Schedule schedule,
                        std::int64_t planned) {
    const std::int64_t closest = std::max<std::int64_t>(1, fit.budget / kClosest);
    const auto filled_by = [&](std::int64_t peak) { return static_cast<double>(peak) / static_cast<double>(planned); };
    double filled = filled_by(core::evaluate(rounded_.graph, schedule).peak);
    std::int64_t met = 0;
    solvers::SolveOptions search = options_.search;
    for (int i = 0; i < (met > 0 ? kBisections : kBisectionsUnmet) && budget - met > closest && !watch_.expired_now();
         ++i) {
      const std::int64_t lowest = std::max(rounded_.lower_bound, fit.solution.peak_bound.value);
      const auto room = static_cast<std::int64_t>(filled * static_cast<double>(fit.budget));
      const std::int64_t next = met > 0 ? met + (budget - met) / 2 : std::max(std::min(room, budget - closest), lowest);
      if (next >= budget) break;
      search.budget = next;
      search.limit = watch_.share(kShareOfBisection);
      search.start = &schedule;
      solvers::Solution solution = call(solver, search);
      if (!meets(solution, search.budget)) break;
      const std::optional<std::int64_t> bytes = offer(solution, watch_.rest().seconds * kShareOfBisection);
      if (!bytes) break;
      if (*bytes <= fit.budget) {
        met = next;
      } else {
        budget = next;
        planned = *bytes;
        filled = filled_by(solution.peak);
        schedule = std::move(solution.schedule);
      }
    }
    return schedule;
  }

  /// Returns `budget` minus kBelow times the number of bytes by which a plan of `planned` bytes exceeds fit.budget.
  std::int64_t below(std::int64_t budget, std::int64_t planned) const {
    return budget - static_cast<std::int64_t>(kBelow * static_cast<double>(planned - fit.budget));
  }

  /// Calls the solver once. This call does not count towards FitOptions::max_rounds.
  solvers::Solution call(const solvers::SolverInfo& solver, const solvers::SolveOptions& search) {
    solvers::Solution solution = solver.solve(rounded_.graph, search);
    learn(solution, *search.budget);
    ++fit.rounds;
    return solution;
  }

  void search_placed(const std::vector<core::Schedule>& from) {
    const double most = fit.fits() ? kShareOfPlaced : kShareOfPlacedUnmet;
    std::vector<solvers::PlacedSchedule> starts;
    for (const core::Schedule& schedule : from) {
      if (core::evaluate(rounded_.graph, schedule).peak / kFarAbove > fit.budget) continue;
      const bool known = fit.plan && schedule.steps == fit.solution.schedule.steps;
      const core::Plan plan =
          known ? *fit.plan : solvers::plan_memory(problem_.graph, schedule, planning(watch_.rest().seconds / 8));
      starts.push_back({schedule, core::offsets_of(plan), 0});
    }
    if (starts.empty()) return;
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
    take(evaluated(found->schedule), std::move(plan));
  }

  /// Plans schedules of Solution::others, the cheapest first, until one of them fits. If the current answer fits, only
  /// cheaper schedules are planned. Takes at most the fraction `share` of the remaining time or, after Ctrl-C, kMoment
  /// seconds.
  void offer_others(const std::vector<core::Schedule>& others, double share = 1) {
    const double end =
        watch_.seconds() + (watch_.interrupted() ? kMoment : share * std::max(0.0, watch_.rest().seconds));
    for (const core::Schedule& schedule : others) {
      const core::Evaluation evaluation = core::evaluate(rounded_.graph, schedule);
      if (watch_.seconds() >= end || (fit.fits() && evaluation.cost >= fit.solution.cost)) return;
      if (!tried_.insert(evaluation.cost).second || !evaluation.valid() ||
          evaluation.peak > rounded_.peak_within(fit.budget))
        continue;
      solvers::Solution other = evaluated(schedule, evaluation);
      offer(other, end - watch_.seconds());
    }
  }

  void learn(const solvers::Solution& solution, std::int64_t budget) {
    solvers::Solution& all = fit.solution;
    if (fit.rounds == 1) all.scope = solution.scope;
    if (solution.peak_bound.value > all.peak_bound.value) all.peak_bound = solution.peak_bound;
    // Under a lower budget, the solver does not consider all schedules within fit.budget, so its bound on the cost does
    // not hold for all of them. Only bounds under the full budget are kept.
    if (budget == rounded_.peak_within(fit.budget) && solution.cost_bound.value > all.cost_bound.value)
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

  void take(const solvers::Solution& solution, std::optional<core::Plan> plan = std::nullopt) {
    fit.take(solution.schedule, solution.peak, solution.cost, std::move(plan), watch_.seconds());
  }

 private:
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
  std::int64_t plan_work_ = 0;
  std::set<std::int64_t> tried_;
};

/// Returns whether to search for a schedule and its addresses together, starting from the given schedule. Requires the
/// following:
/// - The solver may combine several algorithms (Capabilities::any_means).
/// - search_placed() accepts the graph and the scope.
/// - The graph has at least kFewestPlaced nodes. On smaller graphs, calling the solver with lower budgets is better.
/// - The schedule is not too long.
/// - Plans need no PlanOptions::overlap_steps, which search_placed() does not know.
bool may_place(const solvers::SolverInfo& solver, const core::Graph& graph, const FitOptions& options,
               const core::Schedule& schedule) {
  return solver.can.any_means && options.search.scope.order != solvers::OrderRule::stages &&
         graph.node_count() >= kFewestPlaced && schedule.length() <= kLongestPlaced &&
         options.plan.overlap_steps == 0 && solvers::can_search_placed(graph);
}

/// Chooses the budget of the solver's first call. If many tensors of very different sizes are live at once, a plan
/// often needs more bytes than its schedule's peak. On a large graph, the first call takes most of the time, and no
/// time would be left for another call if its plan exceeded the budget. So for large graphs of this kind, the first
/// budget is slightly below the problem's budget.
std::int64_t first_budget(const Problem& problem, const solvers::SolverInfo& solver) {
  const core::Graph& graph = problem.graph;
  if (!solver.can.any_means || graph.node_count() < kLargeGraph || !solvers::can_search_placed(graph))
    return *problem.budget;
  std::set<std::int64_t> sizes;
  for (core::ValueId x = 0; x < graph.value_count(); ++x) sizes.insert(graph.value_size(x));
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.backward(v)) return *problem.budget;  // in training graphs, plans need little more than the peak
  }
  if (sizes.size() < kFewSizes) return *problem.budget;
  return static_cast<std::int64_t>(kFirstOfLarge * static_cast<double>(*problem.budget));
}

/// Calls the solver under one budget after another. Lowers the budget until a plan fits or the solver finds no
/// schedule. Afterwards bisects between two budgets. unmet_ is the highest budget under which the solver found no
/// schedule, or a schedule whose plan fits; lower budgets cannot help. high_ is the lowest budget under which the
/// solver's schedule had a plan that did not fit.
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
    fit_.solution.cost_bound = {problem.baseline.cost, solvers::kAnySchedule};
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
    // The first call may have been short. A call with more time can find more, unless the first call has proved its
    // answer.
    probing_ = fit_.rounds == 1 && options_.first_share > 0 && solution.stop != solvers::Stop::proved;
    more_time_ = (solution.timed_out || probing_) && !search_.limit.counts_work();
    return solution;
  }

  Next after_unmet(solvers::Solution& solution) {
    if (!high_ && !fit_.plan) fitting_.take(solution);
    // If the first budget was below the problem's budget (lowered_), its failure says nothing about the problem's
    // budget. In this case, the next call tries the problem's budget.
    if (lowered_ && fit_.rounds == 1) {
      latest_ = std::move(solution.schedule);
      search_.start = latest_.steps.empty() ? options_.search.start : &latest_;
      budget_ = peak_budget_;
      share_ = options_.share;
      return Next::again;
    }
    if (solution.status == solvers::Status::infeasible && !high_) return Next::end;
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
    if (!placed_ && may_place(solver_, rounded_.graph, options_, latest_)) {
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

  /// Lowers the budget of the next call by the number of bytes by which the plan exceeds fit.budget, but at least by
  /// least_cut_. If the new budget would be below the lower bound on the peak, takes the middle of the old budget and
  /// the bound instead.
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
      // No budget between unmet_ and *high_ is left to try. But another seed gives another schedule of the same peak,
      // whose plan can be lower.
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
      // The solver proved its answer for a lower budget, or for peaks instead of plans. Such a proof does not show that
      // the plan is the best, so Stop::proved is replaced.
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
  const std::int64_t peak_budget_ = rounded_.peak_within(fit_.budget);
  const std::int64_t least_cut_ = std::max(fit_.budget / 200, options_.plan.alignment);
  std::int64_t budget_ = rounded_.peak_within(first_budget(problem_, solver_));  // budget of the next call
  // Whether the first budget is lower than the problem's budget (first_budget()).
  const bool lowered_ = budget_ < peak_budget_;
  double share_ = first_share();
  // Highest budget at or below which no further call is needed, because under this budget the solver found no schedule,
  // or a schedule with a plan that fits.
  std::int64_t unmet_ = 0;
  std::optional<std::int64_t> high_;  // lowest budget for which the solver's schedule had a plan that did not fit
  core::Schedule latest_;
  solvers::Status status_ = solvers::Status::not_found;
  Overrun overrun_;
  bool placed_ = false;
  // - probing_: whether the last call was a short first call.
  // - more_time_: whether the solver could find more with more time.
  bool probing_ = false, more_time_ = false;
  int round_ = 0;
};

/// Makes `known`, a planned schedule with transfers, the answer if its plans fit into both budgets and no cheaper
/// schedule is known that fits.
void take_if_better(const Problem& rounded, const PlannedSchedule& known, Fit& fit) {
  if (!known.plan || known.memory() > fit.budget || known.plan->host_bytes > rounded.graph.host_memory()->budget ||
      !fit.is_improved_by(known.memory(), known.evaluation.cost))
    return;
  const core::Evaluation evaluation = core::evaluate(rounded.graph, known.schedule);
  fit.take(known.schedule, evaluation.peak, evaluation.cost, known.plan, fit.solution.best_seconds);
}

/// Makes options.secured, or options.search.start if it has transfers, the answer if its plans fit and it is cheaper
/// than the schedule that the search without transfers has found. If still no schedule fits, looks for a schedule with
/// transfers that fits (lower_with_transfers()).
void secure_with_transfers(const Problem& problem, const Problem& rounded, const FitOptions& options,
                           core::Stopwatch& watch, Fit& fit) {
  if (options.secured) take_if_better(rounded, *options.secured, fit);
  const core::Schedule* start = options.search.start;
  if (start != nullptr && !start->transfers.empty() &&
      solvers::admissible(problem.graph, options.search.scope, *start) &&
      core::evaluate(rounded.graph, *start).peak <= rounded.peak_within(fit.budget)) {
    solvers::PlanOptions planning = options.plan;
    planning.guard_bytes = 0;
    planning.capacity = fit.budget;
    planning.limit.seconds = std::max(0.0, watch.rest().seconds * kShareWithTransfers);
    core::Plan plan = solvers::plan_memory(problem.graph, *start, planning);
    take_if_better(rounded, PlannedSchedule(problem.graph, *start, std::move(plan)), fit);
  }
  if (fit.fits() || options.secure_share == 0 || watch.interrupted()) return;
  LeastBudget least = fit.least ? *fit.least : LeastBudget();
  if (least.schedule.steps.empty()) {
    const core::Schedule baseline = core::baseline_schedule(problem.graph);
    least.take(PlannedSchedule(problem.graph, baseline, solvers::plan_memory(problem.graph, baseline, options.plan)),
               "none");
    least.bound = {rounded.plan_bound(), solvers::kAnySchedule};
  }
  const LeastBudgetOptions lowering{.search = options.search, .plan = options.plan};
  lower_with_transfers(problem, rounded, lowering, watch.share(kShareWithTransfers), least);
  take_if_better(rounded, least, fit);
  fit.least = std::move(least);
}

}  // namespace

Fit fit_to_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                  const FitOptions& options) {
  if (!problem.graph.host_memory()) return BudgetSearch(problem, rounded, solver, options).run();
  core::Stopwatch watch(options.search.limit);
  core::Schedule steps;
  FitOptions alone = options, rest = options;
  alone.search = without_transfers(options.search, steps);
  alone.search.limit = watch.share(kAloneShare);
  if (options.secured && !options.secured->schedule.transfers.empty()) {
    alone.secured.reset();
    alone.secure_share = 0;
  }
  Fit found = BudgetSearch(problem, rounded, solver, alone).run();
  secure_with_transfers(problem, rounded, options, watch, found);
  rest.search.limit = watch.rest();
  return fit_with_transfers(problem, rounded, solver, rest, std::move(found));
}

double share_for_search(const core::Graph& graph, double seconds) {
  // A plan takes about 5 us per step. kSecondsOfNode is larger, because a schedule can have more steps than the graph
  // has nodes, and more than one plan can be needed.
  constexpr double kSecondsOfNode = 2e-5, kMost = 0.9, kLeast = 0.3;
  return std::clamp(1 - kSecondsOfNode * graph.node_count() / std::max(seconds, 1e-3), kLeast, kMost);
}

FitOptions patient(const core::Graph& graph, solvers::SolveOptions search, solvers::PlanOptions plan) {
  // Work limit of one plan, about a quarter of a second. The limit is low because several schedules are planned.
  constexpr std::int64_t kWork = 150'000'000;
  plan.limit.work = std::min(plan.limit.work, kWork);
  const double most = share_for_search(graph, search.limit.seconds);
  // Under a work limit, every call gets the whole limit, so fewer calls are made.
  const int rounds = search.limit.counts_work() ? 6 : 16;
  const double secure_share = search.limit.counts_work() ? 1 : 0.92;
  return {.search = std::move(search),
          .plan = plan,
          .max_rounds = rounds,
          .share = std::min(0.5, most),
          .later_share = std::min(0.75, most),
          .first_share = 0.05,
          .secure_share = secure_share};
}

}  // namespace cairn::fit
