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
  int candidates = 256;  ///< candidates of a generation; fewer if they would have over a million steps together
  int survivors = 4;     ///< number of survivors for each start
  std::uint64_t seed = 0;
  Scope scope;      ///< scope of the candidates, which are dropped outside of it; the starts must be in it
  int threads = 0;  ///< number of threads that make candidates; 0: one a core
};

/// A schedule of the population with its measures.
struct Individual {
  core::Schedule schedule;
  std::int64_t peak = 0;  ///< peak in bytes
  std::int64_t cost = 0;
};

/// Evolves valid schedules towards least excess over `budget` bytes of peak, then least cost. Random edits make
/// candidates from survivors: evict a value across the step of highest memory and compute it again before its next use,
/// with the inputs that are no longer in memory; drop a recomputation with all steps that ran only for it; shift a
/// step; an eviction and a drop at once; join the beginning of one schedule and the rest of another. The simulator
/// evaluates a whole generation at once. Every start is an island of its own, whose descendants compete among
/// themselves. Returns the best of each island, best first, valid and within the scope. Gives the same answer for a
/// seed on every backend and any number of threads, unless time ends it; if a device fails, the host continues. Charges
/// a unit a step. O(candidates * T) a generation beside the evaluation.
std::vector<Individual> evolve(const core::Graph& graph, std::span<const core::Schedule> starts, std::int64_t budget,
                               const PopulationOptions& options, sim::Simulator& simulator, core::Stopwatch& watch);

/// Evolves a population from the incumbent and from randomised evictions of it, and offers the result, within a tenth
/// of the watch's limit and 200 generations. Does nothing without a budget or without options.simulator: on the threads
/// of a host, single schedules improve as fast by small changes (bench/results/solvers.md).
void offer_evolved(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch);

}  // namespace cairn::solvers
