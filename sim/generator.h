#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/sim/schedule_batch.h"

namespace cairn::sim {

/// An endless numbered sequence of random valid schedules of a graph, called candidates. Candidate i of a seed is the
/// same on every machine, however many are generated at once, because its random numbers are Philox's for (seed, i).
///
/// The order of a candidate is that of Kahn's algorithm with a random choice: at every step, each node whose inputs
/// have run is equally likely to run next. The order is computed in parallel. When the last input of a node has run,
/// the node gets an exponentially distributed waiting time, and nodes are sorted by the time at which they run. The
/// waiting times are computed by an approximate logarithm, so the probabilities err by up to 0.1%. On graphs with paths
/// of many thousand nodes they err slightly more. Times are coarser there, so that two nodes have the same time more
/// often, and the node with the lower number then runs first.
///
/// A candidate also has a number of recomputation moves, which is uniform in 0 .. moves. Each move draws a random edge
/// u -> v (v reads an output of u) and runs u once more directly before v. If an edge is drawn twice, only the first
/// draw counts. An edge from a pinned node does not count, because a pinned node must run only once.
///
/// If `transfers` is not 0, a candidate also has transfers. A number m is uniform in 0 .. transfers. For each step,
/// from the first to the last, a transfer is drawn with probability m / T for T steps. Its value is a random input of
/// the step. Let p be the step before that read the value last, or made it. Then the evict starts after step p and
/// finishes before a random step of p + 1 .. step. The fetch starts after a random step, from the one before the
/// evict's finish to the one before the step, and finishes before the step. A draw does not count in these cases: the
/// value must stay on the device (core::Defect::Reason), an earlier step of the candidate has drawn the value, or the
/// candidate has `transfers` pairs of transfers already.
struct Generator {
  std::uint64_t seed = 0;
  std::int32_t moves = 0;      ///< largest number of recomputation moves of a candidate, >= 0
  std::int32_t transfers = 0;  ///< largest number of evicts of a candidate, each with one fetch, >= 0

  bool operator==(const Generator&) const = default;
};

/// Returns the largest number of steps of a candidate. This is n + min(moves, m) for n nodes and m edges, where m is
/// the total number of predecessors of all nodes. Throws InputError if moves < 0 or transfers < 0.
std::int64_t most_steps(const Generator& generator, core::NodeId nodes, std::int64_t edges);

/// Generates candidate `index`, which must be >= 0. Takes O(m + n log n) time and memory for n nodes and m edges. To
/// generate many candidates, use a Simulator.
core::Schedule generate(const core::Graph& graph, const Generator& generator, std::int64_t index);

}  // namespace cairn::sim
