#include "cairn/solvers/remat/internal/refine.h"

#include <algorithm>

#include "cairn/core/random.h"

namespace cairn::solvers {

void refine(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch,
            int rounds) {
  const core::Schedule baseline = core::baseline_schedule(graph);
  core::Random random(options.seed + 1);
  const std::int64_t floor = incumbent.lower_bound();

  // First without noise: from the baseline, and from the best known.
  if (options.budget && !incumbent.cannot_improve()) {
    for (const core::Schedule& start : {baseline, incumbent.schedule()}) {
      const Eviction eviction = evict_until_it_fits(graph, start, *options.budget, 0, watch);
      incumbent.offer(eviction.schedule);
      if (eviction.fits) incumbent.offer(retain_where_it_fits(graph, eviction.schedule, *options.budget));
    }
    if (incumbent.within_budget()) {
      incumbent.offer(retain_where_it_fits(graph, incumbent.schedule(), *options.budget));
    }
  }
  int barren = 0;
  while (barren < rounds && !incumbent.cannot_improve() && !watch.charge(graph.node_count()).expired()) {
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
    core::Schedule start = incumbent.schedule();
    if (barren % 4 == 3) {
      start = baseline;  // from scratch, with other tastes
    } else if (barren % 2 == 0) {
      // Let values stay as if there were more memory, then take it back elsewhere.
      const auto more = static_cast<std::int64_t>(static_cast<double>(goal - floor) * 0.3 * slack);
      start = retain_where_it_fits(graph, start, goal + more, noise);
    }
    const auto less = barren % 4 == 1 ? static_cast<std::int64_t>(static_cast<double>(goal - floor) * 0.2 * slack) : 0;
    const Eviction eviction = evict_until_it_fits(graph, start, goal - less, noise, watch);
    incumbent.offer(eviction.schedule);
    incumbent.offer(retain_where_it_fits(graph, eviction.schedule, goal, noise));
    incumbent.offer(retain_where_it_fits(graph, eviction.schedule, goal));
    const bool better = incumbent.cost() < cost || (!fits && incumbent.peak() < peak);
    barren = better ? 0 : barren + 1;
  }
}

}  // namespace cairn::solvers
