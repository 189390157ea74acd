#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/sim/schedule_batch.h"

namespace cairn::sim {

/// An endless numbered set of random valid schedules of a graph. Candidate i of a seed is the same on every machine,
/// however many are generated at once, since its random numbers are Philox's for (seed, i).
///
/// Its order: whenever a step is to be chosen, each node whose inputs have run is as likely as any other; up to 0.1%,
/// and a bit more on graphs with paths of many thousand nodes, where two may be due at once and the lower number goes
/// first. That is Kahn's algorithm with a random choice; it is computed in parallel by giving every node an exponential
/// waiting time from when its last input ran, and sorting by the time at which nodes run.
///
/// Its recomputation moves, if asked for: a number of them uniform in 0 .. moves; each takes a random edge u -> v (v
/// reads something of u) and runs u once more right before v. An edge that is drawn twice counts once, and one from a
/// pinned node not at all.
struct Generator {
  std::uint64_t seed = 0;
  std::int32_t moves = 0;  ///< most recomputation moves of a candidate, >= 0

  bool operator==(const Generator&) const = default;
};

/// Steps that a candidate has at most, of a graph of n nodes and m edges (predecessors of all nodes): n + min(moves,
/// m). Throws InputError where moves are below 0.
std::int64_t most_steps(const Generator& generator, core::NodeId nodes, std::int64_t edges);

/// Candidate `index` >= 0. O(m + n log n) and as much memory; for many, see Simulator.
core::Schedule generate(const core::Graph& graph, const Generator& generator, std::int64_t index);

}  // namespace cairn::sim
