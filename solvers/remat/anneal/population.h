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
  int candidates = 256;  ///< candidates of a generation; fewer if they would have more than a million steps in total
  int survivors = 4;     ///< number of survivors for each start
  std::uint64_t seed = 0;
  Scope scope;      ///< scope of the result; the starts must be within it, and candidates outside it are discarded
  int threads = 0;  ///< number of threads that make candidates; 0: one for each core
};

/// A schedule of the population with its measures.
struct Individual {
  core::Schedule schedule;
  std::int64_t peak = 0;  ///< peak in bytes
  std::int64_t cost = 0;
};

/// Evolves valid schedules. First minimises the excess of the peak over `budget` bytes, and among schedules without
/// excess the cost. In each generation, random edits of the survivors make candidates. There are these edits:
/// - Evict a value over the step of highest memory, and compute the value again before its next use, together with the
/// inputs that are no longer in memory.
/// - Drop a recomputation, together with all steps that ran only for it.
/// - Shift a step to another position.
/// - Evict one value and drop one recomputation.
/// - Join the beginning of one schedule and the rest of another.
///
/// The simulator evaluates all candidates of a generation at once. Each start has its own group of survivors (an
/// island). Only schedules that descend from the same start compete. Returns the best schedule of each island, best
/// first. All are valid and within the scope. For a given seed the answer is the same on every backend and for any
/// number of threads, unless the time limit ends the search. If a device fails, the host continues. Charges the watch
/// one unit for each step evaluated. O(candidates * T) for each generation, not counting the evaluation.
std::vector<Individual> evolve(const core::Graph& graph, std::span<const core::Schedule> starts, std::int64_t budget,
                               const PopulationOptions& options, sim::Simulator& simulator, core::Stopwatch& watch);

/// Evolves a population from the incumbent and from random evictions of the incumbent, and offers the results. Uses at
/// most a tenth of the watch's limit and at most 200 generations. Does nothing without a budget. Also does nothing
/// without options.simulator, because on the threads of a host a population does not improve the result
/// (bench/results/solvers.md).
void offer_evolved(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch);

}  // namespace cairn::solvers
