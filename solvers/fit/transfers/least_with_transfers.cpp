// Lowers the least budget by transfers between device and host (least_with_transfers.h).

#include "cairn/solvers/fit/internal/least_with_transfers.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/offload/support/solve.h"

namespace cairn::fit {
namespace {

void add_start(std::vector<core::Schedule>& starts, const core::Schedule& schedule) {
  if (schedule.steps.empty()) return;
  if (std::ranges::find(starts, schedule) == starts.end()) starts.push_back(schedule);
}

/// Lowers the memory of the schedule in a LeastBudget by transfers.
class LoweringPlans {
 public:
  LoweringPlans(const Problem& problem, const Problem& rounded, const LeastBudgetOptions& options,
                const core::Limit& limit, LeastBudget& least)
      : problem_(problem),
        searched_(options.peak_only ? problem : rounded),
        options_(options),
        host_(*problem.graph.host_memory()),
        watch_(limit),
        least_(least) {
    add_start(starts_, core::baseline_schedule(problem.graph));
    add_start(starts_, least.schedule);
    add_start(starts_, least.lowest);
    if (options.search.start != nullptr) add_start(starts_, *options.search.start);
  }

  void run() {
    constexpr double kShare = 0.4;  // the search for the lowest peak gets this fraction of the limit
    constexpr double kSteps[] = {0.25, 0.5, 0.75};
    solvers::OffloadOptions offload = solvers::offload_options(host_, options_.search);
    offload.limit = options_.peak_only ? watch_.rest() : watch_.share(kShare);
    solvers::OffloadSolution lowest = solvers::least_peak_with_transfers(searched_.graph, starts_, offload);
    charge(lowest.work);
    if (!lowest.fits || lowest.peak - searched_.plan_slack >= least_.memory()) return;
    const std::int64_t peak = lowest.peak;
    constexpr std::size_t kQuick = 5;
    constexpr double kNear = 1.05;
    const std::int64_t bytes = offer(lowest.schedule, peak, kQuick);
    if (options_.peak_only) return;
    if (static_cast<double>(bytes) <= kNear * static_cast<double>(peak)) {
      offer(std::move(lowest.schedule), peak, 1);
      return;
    }
    // The plan is far above the peak. A schedule of a higher peak, with fewer transfers, may have a lower plan.
    std::size_t left = std::size(kSteps);
    for (const double step : kSteps) {
      if (least_.memory() <= peak || watch_.expired_now()) return;
      offload.budget = peak + static_cast<std::int64_t>(step * static_cast<double>(least_.memory() - peak));
      offload.limit = watch_.rest();
      if (std::optional<core::Schedule> found = fastest(offload)) offer(std::move(*found), offload.budget, left);
      --left;
    }
  }

 private:
  void charge(std::int64_t work) {
    watch_.charge(work);
    least_.work += work;
  }

  /// Adds transfers to each schedule of starts_ in turn. Returns the fastest resulting schedule whose peak is within
  /// offload.budget, or nothing.
  std::optional<core::Schedule> fastest(const solvers::OffloadOptions& offload) {
    std::optional<solvers::OffloadSolution> best;
    for (const core::Schedule& start : starts_) {
      if (watch_.expired_now()) break;
      solvers::OffloadSolution found = solvers::add_transfers(searched_.graph, start, offload);
      charge(found.work);
      if (found.fits && (!best || found.makespan < best->makespan)) best = std::move(found);
    }
    if (!best) return std::nullopt;
    return std::move(best->schedule);
  }

  /// Plans a schedule in 1 / `left` of the remaining time. Puts it into `least_` if it needs less memory and its copies
  /// on the host fit into the host's budget. If these copies need too much memory, makes another schedule for the same
  /// budget on the peak (`budget`), but with a smaller host budget. Returns the memory of the last schedule that was
  /// planned.
  std::int64_t offer(core::Schedule schedule, std::int64_t budget, std::size_t left) {
    constexpr int kPlans = 3;
    solvers::OffloadOptions offload = solvers::offload_options(host_, options_.search);
    offload.budget = budget;
    for (int k = 0; k < kPlans; ++k) {
      std::optional<core::Plan> plan;
      if (!options_.peak_only) {
        solvers::PlanOptions planning = options_.plan;
        planning.guard_bytes = 0;
        planning.limit.seconds = std::max(0.0, watch_.rest().seconds / static_cast<double>(left));
        plan = solvers::plan_memory(problem_.graph, schedule, planning);
      }
      const std::int64_t over = plan ? plan->host_bytes - host_.budget : 0;
      if (over <= 0) {
        PlannedSchedule one(problem_.graph, std::move(schedule), std::move(plan));
        const std::int64_t memory = one.memory();
        if (memory < least_.memory()) least_.take(std::move(one), "auto");
        return memory;
      }
      *offload.host_budget -= std::max<std::int64_t>(1, over);
      if (*offload.host_budget < 0 || watch_.expired_now()) return plan->bytes;
      offload.limit = watch_.rest();
      std::optional<core::Schedule> smaller = fastest(offload);
      if (!smaller) return plan->bytes;
      schedule = std::move(*smaller);
    }
    return std::numeric_limits<std::int64_t>::max();
  }

  const Problem& problem_;
  const Problem& searched_;
  const LeastBudgetOptions& options_;
  const core::HostMemory host_;
  core::Stopwatch watch_;
  LeastBudget& least_;
  std::vector<core::Schedule> starts_;
};

}  // namespace

void lower_with_transfers(const Problem& problem, const Problem& rounded, const LeastBudgetOptions& options,
                          const core::Limit& limit, LeastBudget& least) {
  if (problem.graph.host_memory()) LoweringPlans(problem, rounded, options, limit, least).run();
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
  offload.budget = rounded.peak_within(*problem.budget);
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
      planning.capacity = problem.budget;
      planning.limit.seconds = std::max(0.0, watch.rest().seconds);
      const core::Plan plan = solvers::plan_memory(problem.graph, found.schedule, planning);
      if (plan.bytes <= *problem.budget && (!bytes || plan.host_bytes < *bytes)) bytes = plan.host_bytes;
    }
    return bytes;
  };
  std::optional<std::int64_t> least = within(std::nullopt);
  if (!least) return std::nullopt;
  std::int64_t low = host.budget;  // no schedule is known for a host budget of at most this many bytes
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
