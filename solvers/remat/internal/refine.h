#pragma once

#include <cstdint>
#include <random>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Removes recomputations wherever the value can stay in memory instead without any step exceeding `budget` bytes,
/// those first whose cost a byte and step is highest; a removal may leave others unread, which go too. Steps that
/// exceed the budget already never get worse. Returns a valid schedule of at most the given one's cost. O((T + sum of
/// in-degrees) log T) a round, few rounds.
core::Schedule retain_where_it_fits(const core::Graph& graph, const core::Schedule& schedule, std::int64_t budget,
                                    std::uint64_t noise_seed = 0);

/// The opposite move: while the peak exceeds `budget`, values that lie unused across the worst step are dropped there
/// and computed again right before their next use, together with those of their inputs that are no longer in memory;
/// the cheapest a byte first, randomised by `noise_seed` unless that is 0. Returns the last schedule, within the budget
/// if `true` comes with it. O(rounds * (T + sum of in-degrees)), at most a few T rounds.
struct Eviction {
  core::Schedule schedule;
  bool fits = false;
};
Eviction evict_until_it_fits(const core::Graph& graph, const core::Schedule& schedule, std::int64_t budget,
                             std::uint64_t noise_seed, core::Stopwatch& watch);

/// Ruin and recreate around the incumbent until the watch expires or `rounds` bring nothing: evict to a tighter budget,
/// then retain up to the real one. Needs a budget or takes the incumbent's peak as one. Deterministic for a seed and a
/// work limit.
void refine(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch,
            int rounds);

}  // namespace cairn::solvers
