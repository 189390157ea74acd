#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/sim/simulator.h"
#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/common/support/incumbent.h"

namespace cairn::solvers {

struct PopulationOptions {
  int generations = 50;
  /// number of candidates of a generation; reduced so that they have at most about a million steps in total
  int candidates = 256;
  int survivors = 4;  ///< number of schedules that survive a generation, for each island (see evolve())
  std::uint64_t seed = 0;
  Scope scope;      ///< scope of the result; the starts must be within it, and candidates outside it are discarded
  int threads = 0;  ///< number of threads that make candidates; 0: one for each core
};

struct Individual {
  core::Schedule schedule;
  std::int64_t peak = 0;  ///< peak memory in bytes
  std::int64_t cost = 0;
};

/// Improves valid schedules by an evolutionary search. The population is divided into islands, one for each start. A
/// generation works as follows: random edits of each island's survivors make candidates, the simulator evaluates all
/// candidates at once, and the best schedules of each island survive. A schedule is better if its peak exceeds `budget`
/// (bytes) by less or, if both schedules exceed the budget by the same amount, if it costs less. These are the edits:
/// - Remove a value from memory around the step of highest memory, and compute the value again before its next use,
///   together with some of the inputs that are no longer in memory.
/// - Drop a recomputation, together with all steps that ran only for it.
/// - Remove one value from memory as above, and drop one recomputation.
/// - Shift a step to another position.
/// - Join the beginning of one schedule and the rest of another schedule of the same island.
///
/// Returns the best schedule of each island, best first. All returned schedules are valid and allowed by the scope in
/// the options. For a given seed the answer is the same on every backend and for any number of threads, unless the
/// watch ends the search early. If a device fails, the host's simulator is used instead. Charges the watch one unit for
/// each step of a candidate. Takes O(c * T) time for each generation of c candidates with T steps each, not counting
/// the evaluation. Throws std::logic_error if a start is invalid or outside the scope.
std::vector<Individual> evolve(const core::Graph& graph, std::span<const core::Schedule> starts, std::int64_t budget,
                               const PopulationOptions& options, sim::Simulator& simulator, core::Stopwatch& watch);

/// Evolves a population that starts with the incumbent (the best known schedule), and with schedules made from it by
/// random evictions. Offers the results to the incumbent. Uses at most a tenth of the watch's limit and at most 200
/// generations. Does nothing if there is no budget or no options.simulator. A host simulator is not used by default,
/// because on a host a population does not improve the result (bench/results/solvers.md).
void offer_evolved(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch);

}  // namespace cairn::solvers
