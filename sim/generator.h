#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/sim/schedule_batch.h"

namespace cairn::sim {

/// An endless numbered set of random valid schedules of a graph. Candidate i of a seed is the same on every machine,
/// however many are generated at once, since its random numbers are Philox's for (seed, i).
///
/// The order of a candidate is that of Kahn's algorithm with a random choice: at every step, each node whose inputs
/// have run is equally likely. These probabilities err by up to 0.1%, and a bit more on graphs with paths of many
/// thousand nodes, where two nodes may be due at once and the lower number goes first. The order is computed in
/// parallel: every node gets an exponential waiting time from when its last input ran, and nodes are sorted by the time
/// at which they run.
///
/// A candidate has a number of recomputation moves that is uniform in 0 .. moves. Each move takes a random edge u -> v
/// (v reads something of u) and runs u once more right before v. An edge that is drawn twice counts once, and an edge
/// from a pinned node does not count.
struct Generator {
  std::uint64_t seed = 0;
  std::int32_t moves = 0;  ///< most recomputation moves of a candidate, >= 0

  bool operator==(const Generator&) const = default;
};

/// Most steps of a candidate, for a graph of n nodes and m edges (predecessors of all nodes): n + min(moves, m). Throws
/// InputError if moves are below 0.
std::int64_t most_steps(const Generator& generator, core::NodeId nodes, std::int64_t edges);

/// Generates candidate `index` >= 0. O(m + n log n), and as much memory; to generate many, see Simulator.
core::Schedule generate(const core::Graph& graph, const Generator& generator, std::int64_t index);

}  // namespace cairn::sim
