#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"

namespace cairn::solvers {

/// A graph as H-Partition sees it: items in an order in which they can run, and the values between these items.
struct PartitionGraph {
  struct Value {
    std::int64_t bytes = 0;
    std::int32_t maker = 0;
    std::vector<std::int32_t> readers;  ///< items that read the value, ascending, distinct, all > maker
  };
  std::int32_t items = 0;  ///< number of items
  std::vector<Value> values;
};

struct PartitionOptions {
  std::int32_t most_top = 20;    ///< most items of the top level (M^t)
  std::int32_t most_lower = 10;  ///< most items of a group (M^l)
  double alpha = 0.5;            ///< exponent of the share of compute nodes in a group's score (equation 1)
  /// Limit on slow rounds, which leave more than 7/8 of their items: together they may visit this many times the items
  /// of the graph before runs of consecutive items take over. 0: they take over at once, which keeps the hierarchy
  /// shallowest. Infinity: they take over only when no candidate is left, as in the paper, which can take quadratic
  /// time and n / M^l levels.
  double slow_rounds = 1;
};

/// A recursive partition: items are groups of items. Ids below PartitionGraph::items are the given items; id items + i
/// is groups[i].
struct Partition {
  /// Members of each group, in an order in which they can run; lower groups first.
  std::vector<std::vector<std::int32_t>> groups;
  std::vector<std::int32_t> top;  ///< items of the top level, in an order in which they can run
  std::int32_t levels = 1;        ///< number of levels, the top level included
};

/// Finds for each item the last item before it that is on all paths to it from a virtual source, whose readers are the
/// items that read nothing; -1 for the source itself. O((n + m) log n).
std::vector<std::int32_t> immediate_dominators(const PartitionGraph& graph);

/// Partitions the graph bottom-up by H-Partition, Algorithm 1 of Gusak et al. 2025. The candidate groups of each round
/// are all nodes between a node and its immediate dominator. The candidate of least score becomes a group; candidates
/// that touch it grow by it or are dropped. Groups become the items of the next round. All groups are convex, so each
/// level is acyclic. Runs of consecutive items become groups when no candidate is left and there are still too many
/// items, after slow rounds, and when `watch` expires. Near-linear: O((n + m) M^l log n). docs/remat/hiremate.md says
/// what the paper leaves open. Throws core::InputError if most_top < 1, most_lower < 2, alpha is not finite, or
/// slow_rounds is not >= 0.
Partition h_partition(const PartitionGraph& graph, const PartitionOptions& options, core::Stopwatch& watch);

/// Partitions the graph into runs of at most `longest` consecutive items, cut where the fewest bytes are alive, then
/// runs of runs until there are at most `most_top`. This gives shallow hierarchies of groups of similar size, for
/// graphs whose order follows their structure. O(m + n longest). Throws as h_partition.
Partition partition_into_runs(const PartitionGraph& graph, std::int32_t most_top, std::int32_t longest);

}  // namespace cairn::solvers
