#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/sim/schedule_batch.h"

namespace cairn::sim {

/// An endless numbered sequence of random valid schedules of a graph, called candidates. Candidate i of a seed is the
/// same on every machine, and does not depend on how many candidates are generated at once, because its random numbers
/// are those of the Philox generator for (seed, i).
///
/// The order of a candidate is that of Kahn's algorithm with a random choice: at every step, each node whose inputs
/// have run is equally likely to run next. An equivalent computation, which runs in parallel, gives the order: each
/// node has an exponentially distributed waiting time, runs that long after the last of its inputs has run, and nodes
/// are sorted by the time at which they run. The waiting times are computed by an approximate logarithm, so the
/// probabilities err by up to 0.1%. On graphs with paths of many thousand nodes the probabilities err slightly more.
/// Times are coarser on such graphs, so two nodes have the same time more often, and of two nodes with the same time
/// the one with the lower number runs first.
///
/// A candidate also has a number of recomputation moves, drawn uniformly from 0 .. moves. Each move draws a random edge
/// u -> v (v reads an output of u) and runs u once more directly before v. If an edge is drawn twice, only the first
/// draw counts. An edge from a pinned node does not count, because a pinned node must run only once.
///
/// If `transfers` is not 0, a candidate also has transfers: evicts, which copy a value to the host, each with a fetch,
/// which copies it back. A number m is drawn uniformly from 0 .. transfers. Then, for each step i of the T steps, from
/// the first to the last, an evict and its fetch are drawn with probability m / T. They move the value of a random
/// input of step i. Let p be the last step before step i that reads or computes the value. The evict starts after step
/// p and finishes before step f, drawn from p + 1 .. i. The fetch starts after a step drawn from f - 1 .. i - 1, and
/// finishes before step i. A draw does not count in these cases: the value must stay on the device
/// (core::Defect::Reason), an earlier step of the candidate has drawn the value, or the candidate has `transfers`
/// evicts already.
struct Generator {
  std::uint64_t seed = 0;
  std::int32_t moves = 0;      ///< largest number of recomputation moves of a candidate, >= 0
  std::int32_t transfers = 0;  ///< largest number of evicts of a candidate, each of which has one fetch; >= 0

  bool operator==(const Generator&) const = default;
};

/// Returns the largest number of steps of a candidate. This is n + min(moves, m) for n nodes and m edges, where m is
/// the total number of predecessors of all nodes. Throws InputError if moves < 0 or transfers < 0.
std::int64_t most_steps(const Generator& generator, core::NodeId nodes, std::int64_t edges);

/// Generates candidate `index`, which must be >= 0. Takes O(m + n log n) time and memory for n nodes and m edges. To
/// generate many candidates, use a Simulator.
core::Schedule generate(const core::Graph& graph, const Generator& generator, std::int64_t index);

}  // namespace cairn::sim
