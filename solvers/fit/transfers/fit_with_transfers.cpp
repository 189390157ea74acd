// Finds a schedule with transfers whose plans fit into the budgets of the device and of the host
// (fit_with_transfers.h). An attempt searches once and plans the schedules found.

#include "cairn/solvers/fit/internal/fit_with_transfers.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/offload/support/solve.h"

namespace cairn::fit {
namespace {

/// Makes attempts with changing budgets for the search, until the plans fit and the answer no longer improves.
class TransferFit {
 public:
  TransferFit(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
              const FitOptions& options, Fit alone)
      : problem_(problem),
        rounded_(rounded),
        solver_(solver),
        options_(options),
        host_(*rounded.graph.host_memory()),
        watch_(options.search.limit),
        alone_(std::move(alone)),
        best_(alone_) {}

  Fit run() {
    constexpr int kRounds = 40, kMostIdle = 4;
    constexpr double kLeast = 0.03, kFirst = 0.4, kNext = 0.25;
    if (!bound()) return finish();
    const std::int64_t most = rounded_.peak_within(*problem_.budget);
    std::int64_t budget = most, host_budget = host_.budget;
    int failures = 0;  // number of attempts in succession whose plan exceeds the budget
    int idle = 0;      // number of attempts in succession whose plan fits, but does not improve the answer
    for (int round = 0; round < kRounds && idle < kMostIdle && budget >= 0 && host_budget >= 0; ++round) {
      const double left = watch_.rest().seconds;
      if (done() || watch_.interrupted() || watch_.expired_now() || left < kLeast * options_.search.limit.seconds)
        break;
      const double share = share_for_search(problem_.graph, left);
      const std::int64_t before = best_.solution.cost;
      const auto [over, host_over] = attempt(round, budget, host_budget, (round == 0 ? kFirst : kNext) * share);
      // The next attempt can find a schedule whose plan exceeds its peak by less than this plan does. So the budget on
      // the peak falls by only three quarters of this plan's excess at first, and by more after each further failure.
      // It rises again once a plan fits.
      if (over > 0) {
        budget -= std::max(over / 4 * (3 + failures++), budget / 200);
      } else {
        failures = 0;
        idle = best_.solution.cost < before ? 0 : idle + 1;
        budget += (most - budget + 1) / 2;
      }
      if (host_over > 0) host_budget -= std::max(host_over, host_budget / 200);
    }
    return finish();
  }

 private:
  bool done() const { return best_.fits() && best_.solution.cost <= least_; }

  /// Computes the lower bound on the makespan. Returns whether a schedule within the budgets may exist.
  bool bound() {
    const solvers::CostBound bound = bound_with_transfers(rounded_.graph, rounded_.peak_within(*problem_.budget),
                                                          options_.search, watch_.share(kBoundShare));
    watch_.charge(bound.work);
    infeasible_ = bound.infeasible;
    least_ = std::max(problem_.baseline.cost, bound.value);
    return !infeasible_;
  }

  // Fractions of the remaining time: for making a start by solvers::cut_start(), for the plan of the fastest schedule,
  // and for the plan of each other schedule.
  static constexpr double kCut = 0.05, kPlanning = 0.5, kPlanningOther = 0.1;
  static constexpr std::size_t kMostOthers = 3;

  /// Searches once, with `budget` bytes for the peak and `host_budget` bytes for copies on the host, in the fraction
  /// `share` of the remaining time. Returns by how many bytes the two plans of the fastest schedule exceed the
  /// problem's budget and the host's budget; {0, 0} if no schedule was found.
  std::pair<std::int64_t, std::int64_t> attempt(int round, std::int64_t budget, std::int64_t host_budget,
                                                double share) {
    solvers::SolveOptions search = options_.search;
    search.seed += static_cast<std::uint64_t>(round);
    search.progress = {};
    if (alone_.fits()) search.start = &alone_.solution.schedule;
    solvers::OffloadOptions offload = solvers::offload_options({host_.link, host_budget}, search);
    offload.budget = budget;
    offload.enough = least_;
    offload.limit = watch_.share(share);
    if (options_.search.progress) {
      offload.progress = [&](std::int64_t makespan, double) {
        options_.search.progress({*problem_.budget, makespan, watch_.seconds()});
      };
    }
    // A later attempt starts from the schedules that the attempt before has found, and from a new schedule that
    // cut_start() makes for the current budget.
    if (!latest_.empty()) {
      core::Stopwatch part(watch_.share(share * kCut));
      std::optional<core::Schedule> start = solvers::cut_start(rounded_.graph, offload, part);
      if (start) latest_.push_back(std::move(*start));
      charge(part.work());
    }
    solvers::OffloadSolution found = latest_.empty()
                                         ? solvers::solve_with_transfers(rounded_.graph, solver_, search, offload)
                                         : solvers::offload(rounded_.graph, latest_, offload);
    ++best_.rounds;
    charge(found.work);
    best_.solution.stop = found.stop;
    if (!found.fits) return {0, 0};
    latest_.assign(1, found.schedule);
    latest_.insert(latest_.end(), found.others.begin(), found.others.end());
    const std::pair<std::int64_t, std::int64_t> over = take(std::move(found.schedule), kPlanning);
    // If the plan of the fastest schedule is a little too high, the plan of a slower schedule may fit.
    const bool near = over.first <= *problem_.budget / 50;
    for (std::size_t k = 0;
         k < std::min(found.others.size(), kMostOthers) && near && (over.first > 0 || over.second > 0); ++k) {
      const auto other = take(std::move(found.others[k]), kPlanningOther);
      if ((other.first <= 0 && other.second <= 0) || watch_.expired_now()) break;
    }
    if (best_.fits()) latest_.push_back(best_.solution.schedule);
    return over;
  }

  void charge(std::int64_t work) {
    watch_.charge(work);
    best_.solution.work += work;
  }

  /// Plans a schedule in the fraction `share` of the remaining time, and makes it the answer if it is better. Returns
  /// by how many bytes its two plans exceed the problem's budget and the host's budget; negative if they are below.
  std::pair<std::int64_t, std::int64_t> take(core::Schedule schedule, double share) {
    solvers::PlanOptions planning = options_.plan;
    planning.guard_bytes = 0;
    planning.capacity = problem_.budget;
    planning.limit.seconds = std::max(0.0, watch_.rest().seconds * share);
    const core::Evaluation measures = core::evaluate(rounded_.graph, schedule);
    core::Plan plan = solvers::plan_memory(problem_.graph, schedule, planning);
    const std::int64_t over = plan.bytes - *problem_.budget, host_over = plan.host_bytes - host_.budget;
    if (host_over <= 0 && best_.is_improved_by(plan.bytes, measures.cost)) {
      best_.take(std::move(schedule), measures.peak, measures.cost, std::move(plan), watch_.seconds());
    }
    return {over, host_over};
  }

  Fit finish() {
    solvers::Solution& solution = best_.solution;
    // Bounds that were proved for recomputation alone need not hold for schedules with transfers. So bounds that also
    // hold with transfers replace them.
    solution.peak_bound = {rounded_.lower_bound, solvers::kAnySchedule};
    solution.cost_bound = {least_, {options_.search.scope.order, 0}};
    solution.scope = options_.search.scope;
    const bool optimal = best_.fits() && solution.cost <= solution.cost_bound.value;
    solution.status = optimal        ? solvers::Status::optimal
                      : best_.fits() ? solvers::Status::feasible
                      : infeasible_  ? solvers::Status::infeasible
                                     : solvers::Status::not_found;
    if (optimal || infeasible_) solution.stop = solvers::Stop::proved;
    if (watch_.interrupted()) solution.stop = solvers::Stop::interrupted;
    solution.timed_out = solution.stop == solvers::Stop::limit;
    best_.seconds = watch_.seconds();
    return std::move(best_);
  }

  const Problem& problem_;
  const Problem& rounded_;
  const solvers::SolverInfo& solver_;
  const FitOptions& options_;
  core::HostMemory host_;
  core::Stopwatch watch_;
  Fit alone_, best_;
  std::vector<core::Schedule> latest_;  ///< schedules that the latest attempt has found, and the best schedule so far
  bool infeasible_ = false;             ///< whether it is proved that no schedule is within the budgets
  std::int64_t least_ = 0;              ///< lower bound on the makespan
};

}  // namespace

Fit fit_with_transfers(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                       const FitOptions& options, Fit alone) {
  return TransferFit(problem, rounded, solver, options, std::move(alone)).run();
}

}  // namespace cairn::fit
