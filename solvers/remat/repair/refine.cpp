#include "cairn/solvers/remat/repair/refine.h"

#include <algorithm>
#include <vector>

#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/remat/repair/evict.h"
#include "cairn/solvers/remat/repair/retain.h"

namespace cairn::solvers {

void refine(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch,
            int rounds) {
  const core::Schedule baseline = core::baseline_schedule(graph);
  core::Random random(options.seed + 1);
  const std::int64_t floor = incumbent.lower_bound();
  core::EditableSchedule work(graph);
  const auto offer = [&] { incumbent.offer({work.steps()}); };

  // The first run has no noise: from the baseline, and from the best known schedule.
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
  int stagnation = 0;  // number of rounds in a row that brought nothing
  while (stagnation < rounds && !incumbent.cannot_improve() && !watch.charge(graph.node_count()).expired()) {
    const std::int64_t cost = incumbent.cost(), peak = incumbent.peak();
    // Without a budget, or while it is not reached, the goal is a little below the peak so far.
    const bool fits = options.budget && incumbent.within_budget();
    const std::int64_t goal =
        fits ? *options.budget
             : std::max(
                   floor,
                   peak - 1 - static_cast<std::int64_t>(static_cast<double>(peak - floor) * 0.1 * random.uniform()));
    const double slack = random.uniform();
    const std::uint64_t noise = random.next() | 1;
    const auto part_of_slack = [&](double part) {
      return static_cast<std::int64_t>(static_cast<double>(goal - floor) * part * slack);
    };
    // Every fourth round without success starts from the baseline, with different noise.
    const bool from_scratch = stagnation % 4 == 3;
    work.assign(from_scratch ? baseline.steps : incumbent.schedule().steps);
    // Values stay as if there were more memory; then values are evicted elsewhere.
    if (stagnation % 2 == 0) retain_where_it_fits(graph, work, goal + part_of_slack(0.3), noise);
    const std::int64_t less = stagnation % 4 == 1 ? part_of_slack(0.2) : 0;
    evict_until_it_fits(graph, work, goal - less, noise, watch);
    offer();
    const std::vector<core::NodeId> evicted = work.steps();
    retain_where_it_fits(graph, work, goal, noise);
    offer();
    work.assign(evicted);
    retain_where_it_fits(graph, work, goal);
    offer();
    const bool better = incumbent.cost() < cost || (!fits && incumbent.peak() < peak);
    stagnation = better ? 0 : stagnation + 1;
  }
}

}  // namespace cairn::solvers
