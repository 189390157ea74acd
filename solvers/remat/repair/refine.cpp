// Improves schedules by rounds of ruin and recreate (refine.h): evictions, followed by retentions of values in memory.

#include "cairn/solvers/remat/repair/refine.h"

#include <algorithm>
#include <vector>

#include "cairn/solvers/remat/repair/evict.h"
#include "cairn/solvers/remat/repair/retain.h"

namespace cairn::solvers {

std::optional<RuinRound> RuinRounds::next(core::Stopwatch& watch, std::int64_t work) {
  // The following distances are drawn at random. These are their largest values:
  // - kBelowPeak: from the known peak down to a new goal, as a fraction of `peak - lower bound`.
  // - kAbove: from the goal up to the budget of the first retention, as a fraction of `goal - lower bound`.
  // - kBelowGoal: from the goal down to the budget of the eviction, as a fraction of `goal - lower bound`.
  constexpr double kBelowPeak = 0.1, kAbove = 0.3, kBelowGoal = 0.2;
  const bool first = idle_ < 0;
  const bool better = first || incumbent_.cost() < cost_ || (!met_ && incumbent_.peak() < peak_);
  idle_ = better ? 0 : idle_ + 1;
  if (idle_ >= most_idle_ || incumbent_.cannot_improve() || watch.charge(work).expired()) return std::nullopt;
  cost_ = incumbent_.cost();
  peak_ = incumbent_.peak();
  met_ = options_.budget && incumbent_.within_budget();
  const std::int64_t floor = incumbent_.lower_bound();
  RuinRound round;
  if (met_) {
    round.goal = *options_.budget;
  } else {
    const double below = static_cast<double>(peak_ - floor) * kBelowPeak * random_.uniform();
    round.goal = std::max(floor, peak_ - 1 - static_cast<std::int64_t>(below));
  }
  const double slack = random_.uniform();
  const auto part_of_slack = [&](double part) {
    return static_cast<std::int64_t>(static_cast<double>(round.goal - floor) * part * slack);
  };
  round.noise = random_.next() | 1;
  if (first && plain_) round.noise = 0;
  round.from_baseline = idle_ % 4 == 3;
  if (idle_ % 2 == 0) round.lifted = round.goal + part_of_slack(kAbove);
  round.evict_to = round.goal - (idle_ % 4 == 1 ? part_of_slack(kBelowGoal) : 0);
  return round;
}

void ruin_and_recreate(const core::Graph& graph, const RuinRound& round, std::int32_t max_occurrences,
                       core::EditableSchedule& work, core::Stopwatch& watch, const std::function<void()>& offer) {
  if (round.lifted) retain_where_it_fits(graph, work, *round.lifted, round.noise);
  evict_until_it_fits(graph, work, round.evict_to, round.noise, watch, max_occurrences);
  offer();
  const std::vector<core::NodeId> evicted = work.steps();
  retain_where_it_fits(graph, work, round.goal, round.noise);
  offer();
  work.assign(evicted);
  retain_where_it_fits(graph, work, round.goal);
  offer();
}

void refine(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch,
            int rounds) {
  const core::Schedule baseline = core::baseline_schedule(graph);
  core::EditableSchedule work(graph);
  const auto offer = [&] { incumbent.offer({work.steps()}); };

  // The first two attempts have no noise. One starts from the baseline, the other from the best known schedule.
  if (options.budget && !incumbent.cannot_improve()) {
    for (const core::Schedule& start : {baseline, incumbent.schedule()}) {
      work.assign(start.steps);
      const bool fits = evict_until_it_fits(graph, work, *options.budget, 0, watch);
      offer();
      if (!fits) continue;
      retain_where_it_fits(graph, work, *options.budget);
      offer();
    }
    if (incumbent.within_budget()) {
      work.assign(incumbent.schedule().steps);
      retain_where_it_fits(graph, work, *options.budget);
      offer();
    }
  }
  RuinRounds drawn(options, incumbent, rounds, false);
  while (const std::optional<RuinRound> round = drawn.next(watch, graph.node_count())) {
    work.assign(round->from_baseline ? baseline.steps : incumbent.schedule().steps);
    ruin_and_recreate(graph, *round, 0, work, watch, offer);
  }
}

}  // namespace cairn::solvers
