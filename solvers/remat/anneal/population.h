#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/sim/simulator.h"
#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct PopulationOptions {
  int generations = 50;
  int candidates = 256;  ///< a generation; fewer where they would have more than a million steps together
  int survivors = 4;     ///< of each start
  std::uint64_t seed = 0;
  Scope scope;      ///< candidates outside are dropped; the starts must be in it
  int threads = 0;  ///< that make candidates; 0: as many as there are cores
};

/// A member of a population and its measures.
struct Individual {
  core::Schedule schedule;
  std::int64_t peak = 0;  ///< bytes
  std::int64_t cost = 0;
};

/// Evolves valid schedules towards least excess over `budget` bytes of peak, then least cost: candidates are made of
/// survivors by random edits (evict a value across the worst step and compute it again before its next use, with those
/// inputs that are gone; drop a recomputation with all that ran for it alone; shift a step; an eviction and a drop at
/// once; the beginning of one schedule and the rest of another), and a whole generation is evaluated by the simulator
/// at once. Every start is an island of its own: its descendants compete among themselves. Returns the best of each
/// island, best first, valid and within the scope. The same for a seed on every backend and any number of threads,
/// unless time ends it; where a device fails, the host goes on. Charges a unit a step. O(candidates * T) a generation
/// beside the evaluation.
std::vector<Individual> evolve(const core::Graph& graph, std::span<const core::Schedule> starts, std::int64_t budget,
                               const PopulationOptions& options, sim::Simulator& simulator, core::Stopwatch& watch);

/// Offers what a population makes of the incumbent, and of randomised evictions from it, within a tenth of the watch's
/// limit and 200 generations: on options.simulator where there is one, else on threads where nothing within the budget
/// is known, as single schedules improve faster by small changes there once something is. Nothing without a budget.
void offer_evolved(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch);

}  // namespace cairn::solvers
