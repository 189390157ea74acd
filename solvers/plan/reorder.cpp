// Changes the order of a schedule's steps so that its plan becomes lower (plan_some_order() in planner.h).

#include <algorithm>
#include <optional>
#include <utility>

#include "cairn/core/profile.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::solvers {
namespace {

/// Moves a few random steps. Every step still reads the results of the same steps, and memory stays within `most`
/// bytes.
void shuffle(core::EditableSchedule& schedule, std::int64_t most, core::Random& random) {
  constexpr std::int32_t kFarthest = 100;  // largest distance over which a step moves, in steps
  constexpr int kTries = 100;
  const auto moves = static_cast<int>(1 + random.next() % 6);
  const auto length = static_cast<std::uint64_t>(schedule.length());
  for (int done = 0, tries = 0; done < moves && tries < kTries; ++tries) {
    const auto step = schedule.at(static_cast<std::int32_t>(random.next() % length));
    const auto legal = schedule.legal(step);
    const std::int32_t here = schedule.place(step), first = std::max(legal.first, here - kFarthest),
                       last = std::min(legal.last, here + kFarthest);
    const auto to = static_cast<std::int32_t>(first + random.next() % static_cast<std::uint64_t>(last - first + 1));
    if (to == here) continue;
    schedule.evaluate_move(step, to);
    bool within = true;
    for (std::int32_t place = std::min(here, to); within && place <= std::max(here, to); ++place)
      within = schedule.moved_during(place) <= most;
    if (!within) continue;
    schedule.move();
    ++done;
  }
}

}  // namespace

PlannedOrder plan_some_order(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options) {
  constexpr std::int64_t kLongest = 20'000, kWorkOfOne = 20'000'000;
  core::Stopwatch watch(options.limit);
  // The graph with aligned sizes is made only if it is needed: most schedules have a plan within a given capacity.
  std::optional<core::Graph> aligned;
  if (!options.capacity) aligned = core::align_sizes(graph, options.alignment);
  const std::int64_t capacity = options.capacity ? *options.capacity : core::evaluate(*aligned, schedule).peak;
  PlanOptions own = options;
  own.capacity.reset();
  own.limit = watch.share(0.3);
  PlannedOrder best{schedule, find_plan(graph, schedule, own)};
  watch.charge(best.plan.work);
  if (!schedule.transfers.empty()) return best;
  const auto missed = [&] { return best.plan.plan.bytes > capacity && best.plan.plan.lower_bound <= capacity; };
  if (!missed() || schedule.length() > kLongest) return best;

  own.capacity = capacity;
  if (!aligned) aligned = core::align_sizes(graph, options.alignment);
  core::EditableSchedule trial(*aligned);
  core::Random random(1);
  trial.assign(schedule.steps);
  // The search also moves on to orders whose plans are not lower, but as low as the plan of the current order. `best`
  // is the first order found with the lowest plan.
  PlannedOrder current = best;
  while (missed() && !watch.expired_now()) {
    shuffle(trial, capacity, random);
    PlannedOrder next{{trial.steps()}, {}};
    own.limit = watch.rest();
    own.limit.work = std::min(own.limit.work, kWorkOfOne);
    next.plan = find_plan(plan_problem(graph, next.schedule), own);
    watch.charge(next.plan.work + next.schedule.length());
    if (next.plan.plan.bytes <= current.plan.plan.bytes) {
      current = std::move(next);
      if (current.plan.plan.bytes < best.plan.plan.bytes) best = current;
    } else {
      trial.assign(current.schedule.steps);
    }
  }
  return best;
}

}  // namespace cairn::solvers
