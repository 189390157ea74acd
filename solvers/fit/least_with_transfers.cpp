#include "cairn/solvers/fit/internal/least_with_transfers.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/offload/solve.h"

namespace cairn::fit {
namespace {

constexpr int kPlans = 3;  ///< largest number of plans, because a plan on the host can exceed the budget on its peak

void add_start(std::vector<core::Schedule>& starts, const core::Schedule& schedule) {
  if (schedule.steps.empty()) return;
  if (std::ranges::find(starts, schedule) == starts.end()) starts.push_back(schedule);
}

}  // namespace

void lower_with_transfers(const Problem& problem, const Problem& rounded, const LeastBudgetOptions& options,
                          const core::Limit& limit, LeastBudget& least) {
  if (!problem.graph.host_memory()) return;
  const core::HostMemory host = *problem.graph.host_memory();
  const Problem& searched = options.peak_only ? problem : rounded;
  core::Stopwatch watch(limit);
  std::vector<core::Schedule> starts;
  add_start(starts, core::baseline_schedule(problem.graph));
  add_start(starts, least.schedule);
  add_start(starts, least.lowest);
  if (options.search.start != nullptr) add_start(starts, *options.search.start);
  solvers::OffloadOptions offload = solvers::offload_options(host, options.search);
  for (int k = 0; k < kPlans && *offload.host_budget >= 0 && !watch.expired_now(); ++k) {
    offload.limit = watch.rest();
    solvers::OffloadSolution found = solvers::least_peak_with_transfers(searched.graph, starts, offload);
    watch.charge(found.work);
    least.work += found.work;
    if (!found.fits || found.peak - searched.plan_slack >= least.memory()) return;
    std::optional<core::Plan> plan;
    if (!options.peak_only) {
      solvers::PlanOptions planning = options.plan;
      planning.guard_bytes = 0;
      planning.limit.seconds = std::max(0.0, watch.rest().seconds);
      plan = solvers::plan_memory(problem.graph, found.schedule, planning);
    }
    if (plan && plan->host_bytes > host.budget) {
      *offload.host_budget -= std::max<std::int64_t>(1, plan->host_bytes - host.budget);
      continue;
    }
    PlannedSchedule one(problem.graph, std::move(found.schedule), std::move(plan));
    if (one.memory() < least.memory()) least.take(std::move(one), "auto");
    return;
  }
}

solvers::SolveOptions without_transfers(solvers::SolveOptions search, core::Schedule& steps) {
  if (search.start == nullptr || search.start->transfers.empty()) return search;
  steps = {search.start->steps};
  search.start = &steps;
  search.start_offsets = nullptr;
  return search;
}

LeastBudget find_least_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                              const LeastBudgetOptions& options) {
  if (!problem.graph.host_memory()) return least_budget_of_steps(problem, rounded, solver, options);
  constexpr double kShareOfSteps = 0.7;
  const core::Stopwatch watch(options.search.limit);
  core::Schedule steps;
  LeastBudgetOptions alone = options;
  alone.search = without_transfers(options.search, steps);
  alone.search.limit.seconds *= kShareOfSteps;
  alone.enough_from *= kShareOfSteps;
  LeastBudget least = least_budget_of_steps(problem, rounded, solver, alone);
  if (least.memory() > options.enough && !least.proved() && !watch.interrupted())
    lower_with_transfers(problem, rounded, options, watch.rest(), least);
  if (least.proved()) least.stop = solvers::Stop::proved;
  least.seconds = watch.seconds();
  return least;
}

std::optional<std::int64_t> sufficient_host_budget(const Problem& problem, const Problem& rounded,
                                                   const std::vector<core::Schedule>& starts,
                                                   const LeastBudgetOptions& options) {
  if (!problem.graph.host_memory() || !problem.budget || starts.empty()) return std::nullopt;
  constexpr int kBisections = 12;
  const core::HostMemory host = *problem.graph.host_memory();
  core::Stopwatch watch(options.search.limit);
  solvers::OffloadOptions offload = solvers::offload_options(host, options.search);
  offload.budget = *problem.budget + rounded.plan_slack;
  // Returns the bytes of the plan on the host, or nothing if no schedule within the host's budget was found.
  const auto within = [&](std::optional<std::int64_t> host_budget) -> std::optional<std::int64_t> {
    std::optional<std::int64_t> bytes;
    for (const core::Schedule& start : starts) {
      if (watch.expired_now()) break;
      offload.host_budget = host_budget;
      offload.limit = watch.rest();
      const solvers::OffloadSolution found = solvers::add_transfers(rounded.graph, start, offload);
      watch.charge(found.work);
      if (!found.fits) continue;
      solvers::PlanOptions planning = options.plan;
      planning.guard_bytes = 0;
      planning.capacity = *problem.budget;
      planning.limit.seconds = std::max(0.0, watch.rest().seconds);
      const core::Plan plan = solvers::plan_memory(problem.graph, found.schedule, planning);
      if (plan.bytes <= *problem.budget && (!bytes || plan.host_bytes < *bytes)) bytes = plan.host_bytes;
    }
    return bytes;
  };
  std::optional<std::int64_t> least = within(std::nullopt);
  if (!least) return std::nullopt;
  std::int64_t low = host.budget;  // no schedule is known within this many bytes
  for (int k = 0; k < kBisections && low + 1 < *least && !watch.expired_now(); ++k) {
    const std::int64_t middle = low + (*least - low) / 2;
    const std::optional<std::int64_t> found = within(middle);
    if (found && *found < *least) {
      least = found;
    } else {
      low = middle;
    }
  }
  return *least > host.budget ? least : std::nullopt;
}

}  // namespace cairn::fit
