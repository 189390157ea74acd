// Searches for schedules with transfers (copies to and from the host) whose peak is within a budget or as low as
// possible. Here, budgets limit peaks, and no plans are made.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/common/support/admissible.h"
#include "cairn/solvers/fit/internal/fit_with_transfers.h"
#include "cairn/solvers/fit/internal/least_with_transfers.h"
#include "cairn/solvers/offload/bound/makespan_bound.h"
#include "cairn/solvers/offload/support/solve.h"
#include "cairn/solvers/remat/bound/cut/cut_bound.h"

namespace cairn::fit {
namespace {

/// Replaces the schedule of `found` and its measures. `seconds` is the time at which the new schedule was found.
void take(const core::Graph& graph, core::Schedule schedule, double seconds, Solved& found) {
  solvers::Solution& solution = found.solution;
  solution.schedule = std::move(schedule);
  found.evaluation = core::evaluate(graph, solution.schedule);
  solution.peak = found.evaluation.peak;
  solution.cost = found.evaluation.cost;
  solution.best_seconds = seconds;
}

/// Returns whether the search may return the schedule `start`: it exists, is in the scope, costs at most `max_cost`,
/// and its peak is at most `budget` bytes.
bool usable(const core::Graph& graph, const core::Schedule* start, const solvers::Scope& scope, std::int64_t max_cost,
            std::int64_t budget) {
  if (start == nullptr || !solvers::admissible(graph, scope, *start)) return false;
  const core::Evaluation evaluation = core::evaluate(graph, *start);
  return evaluation.peak <= budget && evaluation.cost <= max_cost;
}

/// Sets the status of a solution and the reason why the search ended. `any`: whether a schedule was found. `optimal`:
/// whether the bounds prove that this schedule is the best.
void conclude(bool any, bool optimal, solvers::Stop stop, solvers::Solution& solution) {
  solution.status = optimal ? solvers::Status::optimal : any ? solvers::Status::feasible : solvers::Status::not_found;
  solution.stop = optimal ? solvers::Stop::proved : stop;
  solution.timed_out = solution.stop == solvers::Stop::limit;
}

/// Lowers the peak of a schedule while its makespan (the end of its last step) stays within max_cost. Calls offload()
/// under budgets below the lowest peak so far. The distance between this peak and the budget grows after a success and
/// shrinks after a failure.
class Lowering {
 public:
  Lowering(const Problem& problem, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
           Solved& found)
      : problem_(problem),
        solver_(solver),
        search_(search),
        max_cost_(*search.max_cost),
        found_(found),
        watch_(search.limit),
        offload_(solvers::offload_options(*problem.graph.host_memory(), search)) {
    offload_.enough = max_cost_;
  }

  void run() {
    constexpr double kOfRest = 0.2;  // one search gets this fraction of the remaining time
    constexpr double kLeast = 0.02;  // the searches end if less than this fraction of the whole time is left
    constexpr int kMostFailures = 12;
    if (usable(problem_.graph, search_.start, search_.scope, max_cost_, found_.solution.peak - 1))
      take(problem_.graph, *search_.start, 0, found_);
    bound();
    std::int64_t step = (found_.solution.peak - least_ + 1) / 2;
    int failures = 0;  // number of consecutive failures in which `step` was least_step
    solvers::Stop stop = solvers::Stop::stagnated;
    for (int round = 0; found_.solution.peak > least_ && failures < kMostFailures; ++round) {
      if (watch_.expired_now() || watch_.rest().seconds < kLeast * search_.limit.seconds) {
        stop = watch_.interrupted() ? solvers::Stop::interrupted : solvers::Stop::limit;
        break;
      }
      const std::int64_t least_step = std::max<std::int64_t>(1, found_.solution.peak / 2000);
      step = std::clamp(step, least_step, std::max(least_step, found_.solution.peak - least_));
      if (lower_to(std::max(least_, found_.solution.peak - step), round, kOfRest)) {
        step += step / 2;
        failures = 0;
      } else {
        failures += step == least_step ? 1 : 0;
        step /= 2;
      }
    }
    solvers::Solution& solution = found_.solution;
    solution.peak_bound = {least_, {search_.scope.order, 0}};
    solution.work += watch_.work();
    conclude(true, solution.peak <= least_, stop, solution);
  }

 private:
  void bound() {
    const core::HostMemory& host = *problem_.graph.host_memory();
    const solvers::MomentCutOptions options{0, search_.scope.order, host.link, host.limit()};
    least_ = core::within(watch_, kBoundShare, [&](core::Stopwatch& part) {
      return solvers::cut_peak_bound(problem_.graph, options, max_cost_, found_.solution.peak, part);
    });
  }

  /// Searches for a schedule with a peak of at most `budget` bytes, in the fraction `share` of the remaining time.
  /// Returns whether this lowered the peak of the best schedule so far (found_).
  bool lower_to(std::int64_t budget, int round, double share) {
    offload_.budget = budget;
    offload_.seed = search_.seed + static_cast<std::uint64_t>(round);
    offload_.limit = watch_.share(share);
    solvers::OffloadSolution moved = search_once();
    watch_.charge(moved.work);
    if (!moved.fits) return false;
    latest_ = moved.schedule;
    if (moved.makespan > max_cost_ || moved.peak >= found_.solution.peak) return false;
    take(problem_.graph, std::move(moved.schedule), watch_.seconds(), found_);
    if (search_.progress) search_.progress({found_.solution.peak, found_.solution.cost, watch_.seconds()});
    return true;
  }

  solvers::OffloadSolution search_once() {
    if (!latest_) {
      solvers::SolveOptions alone = search_;
      alone.progress = {};
      alone.max_cost.reset();
      alone.start = &found_.solution.schedule;
      return solvers::solve_with_transfers(problem_.graph, solver_, alone, offload_);
    }
    constexpr double kOfCut = 0.1;
    std::vector<core::Schedule> starts{*latest_, found_.solution.schedule};
    std::optional<core::Schedule> cut = core::within(
        watch_, kOfCut, [&](core::Stopwatch& part) { return solvers::cut_start(problem_.graph, offload_, part); });
    if (cut) starts.push_back(std::move(*cut));
    return solvers::offload(problem_.graph, starts, offload_);
  }

  const Problem& problem_;
  const solvers::SolverInfo& solver_;
  const solvers::SolveOptions& search_;
  const std::int64_t max_cost_;
  Solved& found_;
  core::Stopwatch watch_;
  solvers::OffloadOptions offload_;
  std::optional<core::Schedule> latest_;  ///< schedule of the latest search that kept to its budget
  std::int64_t least_ = 0;                ///< lower bound on the peak
};

/// Looks for a schedule with transfers whose peak is within the budget and which is faster than the schedule in
/// `found`.
void improve(const Problem& problem, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
             Solved& found) {
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  bool fits = found.within(search.budget);
  if (usable(problem.graph, search.start, search.scope, fits ? found.solution.cost - 1 : kAny, *search.budget)) {
    take(problem.graph, *search.start, 0, found);
    fits = true;
  }
  const core::Stopwatch watch(search.limit);
  const solvers::CostBound bound =
      bound_with_transfers(problem.graph, *search.budget, search, watch.share(kBoundShare));
  const std::int64_t least = std::max(problem.baseline.cost, bound.value);
  solvers::SolveOptions alone = search;
  alone.progress = {};
  if (fits) alone.start = &found.solution.schedule;
  solvers::OffloadOptions offload = solvers::offload_options(*problem.graph.host_memory(), search);
  offload.budget = *search.budget;
  offload.enough = least;
  offload.limit = watch.rest();
  if (search.progress) {
    offload.progress = [&](std::int64_t makespan, double seconds) {
      search.progress({*search.budget, makespan, seconds});
    };
  }
  solvers::Solution& solution = found.solution;
  solution.work += bound.work;
  solvers::OffloadSolution moved;
  if (!bound.infeasible) {
    moved = solvers::solve_with_transfers(problem.graph, solver, alone, offload);
    solution.work += moved.work;
    if (moved.fits && (!fits || moved.makespan < solution.cost))
      take(problem.graph, std::move(moved.schedule), watch.seconds(), found);
  }
  solution.cost_bound = {least, {search.scope.order, 0}};
  const bool any = fits || moved.fits;
  conclude(any, any && solution.cost <= least, moved.stop, solution);
  if (bound.infeasible) {
    solution.status = solvers::Status::infeasible;
    solution.peak_bound = {*search.budget + 1, {search.scope.order, 0}};
  }
}

}  // namespace

solvers::CostBound bound_with_transfers(const core::Graph& graph, std::int64_t budget,
                                        const solvers::SolveOptions& search, const core::Limit& limit) {
  const core::HostMemory& host = *graph.host_memory();
  return solvers::makespan_bound(
      graph,
      {.common = {.budget = budget, .order = search.scope.order, .limit = limit, .memory_bytes = search.memory_bytes},
       .link = host.link,
       .host_budget = host.limit()});
}

Solved solve_for_peak(const Problem& problem, const solvers::SolverInfo& solver, const solvers::SolveOptions& search) {
  if (!problem.graph.host_memory()) return solve(problem.graph, solver, search);
  // The time limit is divided between the searches without and with transfers. A work limit is not divided: each of the
  // two searches gets all of it.
  const core::Stopwatch watch(search.limit);
  core::Schedule steps;
  solvers::SolveOptions alone = without_transfers(search, steps);
  alone.limit.seconds *= kAloneShare;
  Solved found = solve(problem.graph, solver, alone);
  solvers::Solution& solution = found.solution;
  // Bounds that were proved for recomputation alone need not hold for schedules with transfers. So bounds that also
  // hold with transfers replace them.
  solution.peak_bound = {problem.lower_bound, solvers::kAnySchedule};
  solution.cost_bound = {problem.baseline.cost, solvers::kAnySchedule};
  solution.scope = search.scope;
  solvers::SolveOptions rest = search;
  rest.limit = watch.rest();
  const bool cheapest = solution.cost <= problem.baseline.cost;
  if (search.max_cost) {
    Lowering(problem, solver, rest, found).run();
  } else if (!search.budget) {
    conclude(true, cheapest && solution.peak <= problem.lower_bound, solution.stop, solution);
  } else if (*search.budget >= problem.lower_bound && !(found.within(search.budget) && cheapest)) {
    improve(problem, solver, rest, found);
  }
  found.seconds = watch.seconds();
  return found;
}

}  // namespace cairn::fit
