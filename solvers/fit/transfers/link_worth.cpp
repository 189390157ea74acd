// Finds out what transfers over a link can save (link_worth.h).

#include "cairn/solvers/fit/link_worth.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/support/front.h"
#include "cairn/solvers/offload/support/offload.h"

namespace cairn::fit {
namespace {

/// Adds transfers to the input order, which is the baseline, under one budget after another.
class LinkSearch {
 public:
  LinkSearch(const Problem& rounded, const core::Limit& limit)
      : rounded_(rounded),
        host_(*rounded.graph.host_memory()),
        baseline_(core::baseline_schedule(rounded.graph)),
        watch_(limit) {}

  bool expired() { return watch_.expired_now(); }
  double seconds_left() const { return std::max(0.0, watch_.rest().seconds); }
  const core::Schedule& baseline() const { return baseline_; }

  /// Adds transfers to the input order, so that the peak of the resulting schedule is at most `budget` bytes, if that
  /// is possible.
  solvers::OffloadSolution within(std::int64_t budget) {
    const solvers::OffloadOptions options{.link = host_.link,
                                          .budget = budget,
                                          .host_budget = host_.budget,
                                          .change_steps = false,
                                          .enough = rounded_.baseline.cost,
                                          .limit = watch_.rest()};
    solvers::OffloadSolution found = solvers::add_transfers(rounded_.graph, baseline_, options);
    watch_.charge(found.work);
    return found;
  }

  /// Returns the schedule of lowest peak among the schedules found that cost no more than the baseline.
  core::Schedule lowest_free() {
    core::Schedule lowest = baseline_;
    std::int64_t low = rounded_.lower_bound, high = rounded_.baseline.peak;
    const std::int64_t close = std::max<std::int64_t>(1, high / 1000);
    while (high - low > close && !expired()) {
      const std::int64_t middle = low + (high - low) / 2;
      solvers::OffloadSolution found = within(middle);
      if (found.fits && found.makespan <= rounded_.baseline.cost) {
        high = found.peak;
        lowest = std::move(found.schedule);
      } else {
        low = middle;
      }
    }
    return lowest;
  }

 private:
  const Problem& rounded_;
  core::HostMemory host_;
  core::Schedule baseline_;
  core::Stopwatch watch_;
};

}  // namespace

LinkWorth link_worth(const Problem& problem, const Problem& rounded, const std::vector<solvers::Tradeoff>& recomputed,
                     const std::optional<solvers::PlanOptions>& plan, const core::Limit& limit) {
  constexpr std::size_t kMostPoints = 16;
  LinkSearch search(rounded, limit);
  LinkWorth worth;
  solvers::PlanOptions planning = plan.value_or(solvers::PlanOptions{});
  planning.guard_bytes = 0;
  const auto planned = [&](core::Schedule schedule) {
    if (!plan) return PlannedSchedule(problem.graph, std::move(schedule), std::nullopt);
    planning.limit.seconds = search.seconds_left();
    core::Plan found = solvers::plan_memory(problem.graph, schedule, planning);
    return PlannedSchedule(problem.graph, std::move(schedule), std::move(found));
  };
  worth.free = planned(search.baseline());
  PlannedSchedule lowest = planned(search.lowest_free());
  const std::int64_t host_bytes = lowest.plan ? lowest.plan->host_bytes : lowest.evaluation.host_peak;
  if (lowest.memory() < worth.free.memory() && host_bytes <= problem.graph.host_memory()->budget)
    worth.free = std::move(lowest);
  // Visits known schedules without transfers from the highest peak downwards, until such a schedule costs less than the
  // input order with transfers within the same peak.
  const std::vector<solvers::Tradeoff> points = solvers::undominated(recomputed);
  const std::size_t step = std::max<std::size_t>(1, points.size() / kMostPoints);
  for (std::size_t left = points.size(); left > 0 && !search.expired(); left -= std::min(left, step)) {
    const solvers::Tradeoff& point = points[left - 1];
    const solvers::OffloadSolution found = search.within(point.peak);
    if (found.fits && found.makespan <= point.cost) continue;
    worth.recompute_below = point.peak;
    break;
  }
  return worth;
}

}  // namespace cairn::fit
