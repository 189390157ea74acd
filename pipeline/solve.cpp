#include "cairn/pipeline/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cairn/core/limit.h"
#include "cairn/pipeline/internal/overrun.h"
#include "cairn/pipeline/internal/placed_plan.h"
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/remat/placed_search.h"

namespace cairn::pipeline {
void require_right(const std::string& defect) {
  if (!defect.empty()) throw DefectError(fmt::format("the plan is wrong: {}; please report this", defect));
}

core::Evaluation evaluate_again(std::string_view solver, const core::Graph& graph, const solvers::Solution& solution) {
  const core::Evaluation evaluation = core::evaluate(graph, solution.schedule);
  if (!evaluation.valid())
    throw DefectError(fmt::format("solver '{}' returned an invalid schedule: {}; please report this", solver,
                                  core::describe(graph, evaluation.defect)));
  if (evaluation.peak != solution.peak || evaluation.cost != solution.cost)
    throw DefectError(
        fmt::format("solver '{}' reports peak {} and cost {}, but its schedule has {} and {}; please report this",
                    solver, solution.peak, solution.cost, evaluation.peak, evaluation.cost));
  return evaluation;
}

bool meets(const solvers::Solution& solution, std::optional<std::int64_t> budget) {
  const bool found = solution.status == solvers::Status::optimal || solution.status == solvers::Status::feasible;
  return found && (!budget || solution.peak <= *budget);
}

Solved solve(const core::Graph& graph, const solvers::SolverInfo& solver, const solvers::SolveOptions& options) {
  Solved solved;
  const core::Stopwatch watch(options.limit);
  solved.solution = solver.solve(graph, options);
  solved.seconds = watch.seconds();
  if (solved.within(std::nullopt) || !solved.solution.schedule.steps.empty())
    solved.evaluation = evaluate_again(solver.name, graph, solved.solution);
  return solved;
}

solvers::PlanSolution checked_plan(const core::Graph& graph, const core::Schedule& schedule,
                                   const solvers::PlanOptions& options) {
  solvers::PlanSolution found = solvers::find_plan(solvers::plan_problem(graph, schedule), options);
  require_right(core::check_plan(graph, schedule, found.plan));
  return found;
}

solvers::PlanSolution checked_plan(const std::vector<core::BufferSpec>& specs,
                                   const std::vector<core::AddressRange>& forbidden,
                                   const solvers::PlanOptions& options) {
  const std::string contradiction = core::check_fixed_offsets(specs, forbidden, options.alignment, options.capacity);
  if (!contradiction.empty()) throw core::InputError(contradiction);
  solvers::PlanProblem problem = solvers::plan_problem(specs);
  problem.forbidden = forbidden;
  solvers::PlanSolution found = solvers::find_plan(problem, options);
  for (std::size_t i = 0; i < specs.size(); ++i) {  // as given, not as ranks
    found.plan.buffers[i].first = specs[i].lower;
    found.plan.buffers[i].last = specs[i].upper - 1;
  }
  require_right(core::check_specs(specs, forbidden, found.plan, options.guard_bytes));
  return found;
}

solvers::Status FoundPlan::status() const {
  if (capacity && solution.lower_bound > *capacity) return solvers::Status::infeasible;
  if (!fits()) return solvers::Status::not_found;
  return solution.plan.bytes == solution.lower_bound ? solvers::Status::optimal : solvers::Status::feasible;
}

bool has_ops(const core::Graph& graph) {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.op(v) != nullptr) return true;
  }
  return false;
}

std::int64_t default_alignment(const core::Graph& graph) { return has_ops(graph) ? 256 : 1; }

double share_for_search(const core::Graph& graph, double seconds) {
  // A first plan takes some 5 us a step; schedules are longer than the graph, and may need more than one.
  constexpr double kSecondsOfNode = 2e-5, kMost = 0.9, kLeast = 0.3;
  return std::clamp(1 - kSecondsOfNode * graph.node_count() / std::max(seconds, 1e-3), kLeast, kMost);
}

FitOptions patient(const core::Graph& graph, solvers::SolveOptions search, solvers::PlanOptions plan) {
  constexpr std::int64_t kWork = 150'000'000;  // a quarter of a second: several schedules are planned
  plan.limit.work = std::min(plan.limit.work, kWork);
  const double most = share_for_search(graph, search.limit.seconds);
  const int rounds = search.limit.counts_work() ? 6 : 16;  // each of the whole work, or of a part of the time
  const double secure_share = search.limit.counts_work() ? 1 : 0.92;
  return {.search = std::move(search),
          .plan = std::move(plan),
          .max_rounds = rounds,
          .share = std::min(0.5, most),
          .later_share = std::min(0.75, most),
          .first_share = 0.05,
          .secure_share = secure_share};
}

namespace {

/// What several calls of a solver, each under a budget that is no higher than fit.budget, found together.
class Fitting {
 public:
  Fitting(const Problem& problem, const Problem& rounded, const FitOptions& options, core::Stopwatch& watch)
      : problem_(problem), rounded_(rounded), options_(options), watch_(watch) {
    fit.budget = problem.budget.value();
    plan_work_ = options.plan.limit.work;
  }

  Fit fit;

  /// Plans a schedule that meets the solver's budget, and keeps it if it is the best. Returns the plan's bytes; none
  /// where it is too long to be planned while people wait.
  std::optional<std::int64_t> offer(solvers::Solution& solution, double most_seconds = core::Limit().seconds) {
    constexpr std::int64_t kQuicklyPlanned = 20'000;  // steps
    if (watch_.interrupted() && solution.schedule.length() > kQuicklyPlanned) {
      if (!fit.plan) take(solution);
      return std::nullopt;
    }
    // Several may be needed, and none should take the time of a search.
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

  /// Once: looks for something that fits by find_least_budget. It is kept for the end: searches that begin there, with
  /// a schedule as low as it is dear, find worse ones than those that come from above.
  void secure(const solvers::SolverInfo& solver) {
    if (options_.secure_share == 0 || fit.least || fit.fits() || watch_.expired_now()) return;
    LeastBudgetOptions options{.search = options_.search, .plan = options_.plan, .enough = fit.budget};
    options.plan.limit = {};  // it limits its plans itself; cut shorter, they would not be those that info promised
    if (!options.search.limit.counts_work()) {    // of those each call has the whole
      constexpr std::int64_t kLeast = 1'200'000;  // that of a quarter of a second
      options.search.limit.work = std::max(kLeast, least_budget_work(options.search.limit));
    }
    options.search.limit.seconds = watch_.rest().seconds * options_.secure_share;
    fit.least = find_least_budget(problem_, rounded_, solver, options);
    fit.solution.work += fit.least->work;
  }

  /// What secure() found, if nothing else fits and its plan is lower. Whether that fits.
  bool take_secured() {
    if (fit.fits() || !fit.least || !fit.least->plan || (fit.plan && fit.least->bytes >= fit.plan->bytes)) return false;
    take(evaluated(fit.least->schedule));
    fit.plan = fit.least->plan;
    return fit.fits();
  }

  /// What follows a first schedule whose plan is above the budget, where addresses can be searched with the rest: what
  /// secure() finds, whatever it costs, then a cheaper schedule of about that peak. The search for schedule and plan
  /// together begins from both.
  void place(const solvers::SolverInfo& solver, const core::Schedule& first, std::int64_t planned) {
    constexpr std::int64_t kCareful = 3;  // times the work of other plans: few are made, and all depends on them
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

  /// A cheaper schedule than what fits, where the plan of the first has that much too much: under a budget that is
  /// lower by as much, but not below what fits, first from above, then from what fits. Where there is none, the first.
  core::Schedule aim_cheaply(const solvers::SolverInfo& solver, const core::Schedule& first, std::int64_t planned) {
    constexpr double kShare = 0.4, kMore = 1.1;
    constexpr std::int64_t kClose = 50;
    // Bounds are of use only under the budget itself, which is tried once where the plan needs hardly more.
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

  /// One more call of the solver, which does not count for FitOptions::max_rounds.
  solvers::Solution call(const solvers::SolverInfo& solver, const solvers::SolveOptions& search) {
    solvers::Solution solution = solver.solve(rounded_.graph, search);
    learn(solution, *search.budget);
    ++fit.rounds;
    return solution;
  }

  /// Schedule and plan together, for what is left of the time.
  void search_placed(const std::vector<core::Schedule>& from) {
    const double most = fit.fits() ? 0.98 : 0.7;  // what is found is checked, or nothing is and others need time
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

  /// Plans the solver's other schedules, the cheapest first, for that part of the time that is left, until one fits and
  /// is better than what fits already. After Ctrl-C too, for a moment: one that fits is to be had then.
  void offer_others(const std::vector<core::Schedule>& others, double share = 1) {
    constexpr double kMoment = 0.3;  // seconds
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

  /// Takes over what one call of the solver, under that budget, says beside its schedule.
  void learn(const solvers::Solution& solution, std::int64_t budget) {
    solvers::Solution& all = fit.solution;
    if (fit.rounds == 1) all.scope = solution.scope;
    if (solution.peak_bound.value > all.peak_bound.value) all.peak_bound = solution.peak_bound;
    // A lower budget excludes schedules that this one does not.
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

  /// Keeps the schedule whatever its plan is.
  void take(const solvers::Solution& solution) {
    fit.solution.schedule = solution.schedule;
    fit.solution.peak = solution.peak;
    fit.solution.cost = solution.cost;
    fit.solution.best_seconds = watch_.seconds();
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
  std::int64_t plan_work_ = 0;    // of a plan
  std::set<std::int64_t> tried_;  // costs of others
};

/// Whether schedule and plan are searched together from there: what was asked for is the best there is, not what one
/// solver finds, and the graph is neither so small that budgets a little lower do better, nor too long.
bool may_place(const solvers::SolverInfo& solver, const core::Graph& graph, const solvers::Scope& scope,
               const core::Schedule& schedule) {
  constexpr core::NodeId kFewest = 300;
  constexpr std::int64_t kLongest = 20'000;  // steps
  return solver.name == "auto" && scope.order != solvers::OrderRule::stages && graph.node_count() >= kFewest &&
         schedule.length() <= kLongest && solvers::can_search_placed(graph);
}

/// The budget for a first call. On large graphs it takes most of the time, and there is none for a second one where the
/// plan needs more than the peak, as it does where many tensors of all sizes live at once.
std::int64_t first_budget(const Problem& problem, const solvers::SolverInfo& solver) {
  constexpr core::NodeId kLarge = 5000;
  constexpr double kPart = 0.964;
  const core::Graph& graph = problem.graph;
  if (solver.name != "auto" || graph.node_count() < kLarge || !solvers::can_search_placed(graph))
    return *problem.budget;
  std::set<std::int64_t> sizes;
  for (core::ValueId x = 0; x < graph.value_count(); ++x) sizes.insert(graph.value_size(x));
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.backward(v)) return *problem.budget;  // lives are nested, and plans low
  }
  constexpr std::size_t kFew = 8;
  if (sizes.size() < kFew) return *problem.budget;
  return static_cast<std::int64_t>(kPart * static_cast<double>(*problem.budget));
}

/// Those that no other one beats in both respects, by ascending peak.
std::vector<solvers::Tradeoff> not_beaten(std::vector<solvers::Tradeoff> all) {
  std::sort(all.begin(), all.end(), [](const solvers::Tradeoff& a, const solvers::Tradeoff& b) {
    return std::pair(a.peak, a.cost) < std::pair(b.peak, b.cost);
  });
  std::vector<solvers::Tradeoff> front;
  for (const solvers::Tradeoff& one : all) {
    if (front.empty() || one.cost < front.back().cost) front.push_back(one);
  }
  return front;
}

}  // namespace

Fit fit_to_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                  const FitOptions& options) {
  constexpr double kWorthwhile = 0.05;  // of the time: less is not worth another call of the solver
  constexpr double kShareOfOthers = 0.05;
  core::Stopwatch watch(options.search.limit);
  Fitting fitting(problem, rounded, options, watch);
  Fit& fit = fitting.fit;
  fit.solution.cost_bound = {problem.baseline.cost, solvers::kAnySchedule};  // every node runs once
  const std::int64_t peak_budget = fit.budget + rounded.plan_slack;
  solvers::SolveOptions search = options.search;
  if (search.start != nullptr) {
    solvers::Solution known = fitting.evaluated(*search.start);
    if (known.peak <= peak_budget) fitting.offer(known);
  }
  // Of peaks; above it no plan fits.
  const std::int64_t least_cut = std::max(fit.budget / 200, options.plan.alignment);
  // The solver's budget goes down until a plan fits, then halfway up again.
  std::int64_t solver_budget = first_budget(problem, solver) + rounded.plan_slack, unmet = 0;
  const bool lowered = solver_budget < peak_budget;
  bool placed = false;
  Overrun overrun;                   // of searches
  std::optional<std::int64_t> high;  // the lowest whose plan did not fit
  double share = options.first_share > 0 && !lowered ? options.first_share : options.share;
  if (lowered) share = share_for_search(problem.graph, options.search.limit.seconds);
  core::Schedule latest;
  solvers::Status status = solvers::Status::not_found;
  int round = 0;
  const auto goes_on = [&] {
    if (round == 0) return true;
    // On large graphs a plan alone takes longer.
    const double plan = fit.plan ? 4e-5 * problem.graph.node_count() : 0;
    const double least = std::max(kWorthwhile * options.search.limit.seconds, plan) + overrun.seconds();
    return round < options.max_rounds && solver_budget > 0 && watch.rest().seconds >= least;
  };
  while (goes_on() && !watch.interrupted()) {
    if (fit.rounds > 0) {
      fitting.secure(solver);
      if (watch.rest().seconds < overrun.seconds()) break;
    }
    ++round;
    ++fit.rounds;
    search.budget = solver_budget;
    search.limit.seconds = overrun.before(watch.rest()).seconds * share;
    const double begun = watch.seconds();
    solvers::Solution solution = solver.solve(rounded.graph, search);
    overrun.learn(search.limit, watch.seconds() - begun);
    fitting.learn(solution, solver_budget);
    if (solver_budget == peak_budget) status = solution.status;
    // What stagnated, or gave up, within a short first call may find more in a longer one.
    const bool probing = fit.rounds == 1 && options.first_share > 0 && solution.stop != solvers::Stop::proved;
    const bool more_time = (solution.timed_out || probing) && !search.limit.counts_work();
    if (!meets(solution, solver_budget)) {
      if (!high && !fit.plan) fitting.take(solution);
      if (lowered && fit.rounds == 1) {  // says nothing about the budget
        latest = std::move(solution.schedule);
        search.start = latest.steps.empty() ? options.search.start : &latest;
        solver_budget = peak_budget;
        share = options.share;
        continue;
      }
      if (solution.status == solvers::Status::infeasible && !high) break;
      // What found nothing from above goes on from what fits.
      const bool from_secured = fit.rounds > 1 && fitting.take_secured();
      if (!high && !more_time && !from_secured) break;
      if (probing) share = options.share;
      if (high) unmet = std::max(unmet, solver_budget);
      latest = std::move(solution.schedule);
    } else {
      const std::optional<std::int64_t> planned = fitting.offer(solution);
      if (!planned) break;
      if (fit.rounds == 1) share = *planned > fit.budget ? options.share : options.later_share;
      latest = std::move(solution.schedule);
      if (*planned > fit.budget && !placed && may_place(solver, rounded.graph, search.scope, latest)) {
        placed = true;
        fitting.offer_others(solution.others, kShareOfOthers);
        fitting.place(solver, latest, *planned);
        if (fit.fits()) break;
      }
      if (*planned > fit.budget) {
        fitting.offer_others(solution.others);
        high = solver_budget;
        solver_budget -= std::max(*planned - fit.budget, least_cut);
        const std::int64_t lowest = std::max(rounded.lower_bound, fit.solution.peak_bound.value);
        if (solver_budget<lowest&& * high> lowest + 1) solver_budget = lowest + (*high - lowest) / 2;
        if (solver_budget > unmet && (unmet == 0 || !fit.fits())) {
          search.start = &latest;
          continue;
        }
      } else {
        unmet = std::max(unmet, solver_budget);
        if (lowered && fit.rounds == 1) {
          solver_budget = peak_budget;
          latest = fit.solution.schedule;
          search.start = &latest;
          share = options.later_share;
          continue;
        }
        if (!high && !more_time) break;
      }
    }
    if (fit.fits()) latest = fit.solution.schedule;
    search.start = latest.steps.empty() ? options.search.start : &latest;
    if (!high) continue;
    if (*high - unmet <= 2 * least_cut) {
      // Another schedule of as much memory may have a lower plan.
      ++search.seed;
      unmet = 0;
      solver_budget = *high - least_cut;
    } else {
      solver_budget = unmet + (*high - unmet) / 2;
    }
  }
  if (status != solvers::Status::infeasible) fitting.secure(solver);
  fitting.take_secured();
  fit.solution.peak_bound.value = std::max<std::int64_t>(0, fit.solution.peak_bound.value - rounded.plan_slack);
  fit.solution.tradeoffs = not_beaten(std::move(fit.solution.tradeoffs));
  fit.solution.status = status;
  if (watch.interrupted() && status != solvers::Status::infeasible) fit.solution.stop = solvers::Stop::interrupted;
  const bool proved = fit.fits() && fit.solution.cost == fit.solution.cost_bound.value;
  if (fit.fits()) fit.solution.status = proved ? solvers::Status::optimal : solvers::Status::feasible;
  if (proved) {
    fit.solution.stop = solvers::Stop::proved;
  } else if (fit.solution.stop == solvers::Stop::proved && fit.solution.status != solvers::Status::infeasible) {
    // That was of a lower budget, or of peaks alone.
    const bool spent = watch.rest().seconds < kWorthwhile * options.search.limit.seconds;
    fit.solution.stop = spent ? solvers::Stop::limit : solvers::Stop::ended;
  }
  fit.seconds = watch.seconds();
  return fit;
}

Decision decide_on(const core::Graph& graph, std::string solver, core::Schedule schedule,
                   const solvers::PlanOptions& options, std::optional<core::Plan> plan) {
  solvers::PlanOptions without_guards = options;
  without_guards.guard_bytes = 0;
  Decision decision;
  decision.solver = std::move(solver);
  decision.schedule = std::move(schedule);
  decision.plan = plan ? *std::move(plan) : solvers::plan_memory(graph, decision.schedule, without_guards);
  decision.budgeted_bytes = decision.plan.bytes;
  decision.guard_bytes = options.guard_bytes;
  if (options.guard_bytes > 0) decision.plan = solvers::plan_memory(graph, decision.schedule, options);
  decision.evaluation = core::evaluate(graph, decision.schedule);
  decision.predicted_peak = core::evaluate(core::align_sizes(graph, options.alignment), decision.schedule).peak;
  return decision;
}

Decision decide_on_baseline(const core::Graph& graph, const solvers::PlanOptions& options) {
  return decide_on(graph, "baseline", core::baseline_schedule(graph), options);
}

Decision decide(const Problem& problem, std::string_view solver, const FitOptions& options) {
  if (!problem.budget) throw core::InputError("a schedule that fits needs a budget, as 1.5GiB or 80%");
  const Problem rounded = problem.rounded_up(options.plan.alignment);
  Fit fit = fit_to_budget(problem, rounded, solvers::find_solver(solver), options);
  if (!fit.fits() && options.search.limit.stop != nullptr && *options.search.limit.stop)
    throw core::InterruptedError(fmt::format("the search for a schedule of '{}' was interrupted", problem.name));
  if (!fit.fits())
    throw core::Error(fmt::format(
        "found no schedule of '{}' whose plan fits into {} bytes: {}", problem.name, fit.budget,
        fit.plan ? fmt::format("the lowest plan needs {} bytes", fit.plan->bytes)
                 : fmt::format("the lower bound is {} bytes, and the least budget known feasible is {} bytes",
                               rounded.lower_bound,
                               least_known(problem, rounded, solvers::find_solver(solver), std::move(fit.least),
                                           {.search = options.search, .plan = options.plan})
                                   .bytes)));
  evaluate_again(solver, rounded.graph, fit.solution);
  return decide_on(problem.graph, std::string(solver), std::move(fit.solution.schedule), options.plan,
                   std::move(fit.plan));
}

}  // namespace cairn::pipeline
