#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"

namespace cairn::solvers {

/// A graph in the form that H-Partition uses: items, in an order in which they can run, and the values that they pass
/// to each other.
struct PartitionGraph {
  struct Value {
    std::int64_t bytes = 0;
    std::int32_t maker = 0;
    std::vector<std::int32_t> readers;  ///< items that read the value; ascending, distinct, all > maker
  };
  std::int32_t items = 0;  ///< number of items
  std::vector<Value> values;
};

struct PartitionOptions {
  std::int32_t most_top = 20;    ///< largest number of items of the top level (M^t)
  std::int32_t most_lower = 10;  ///< largest number of items of a group (M^l)
  double alpha = 0.5;            ///< exponent of the share of compute nodes in the score of a group (equation 1)
  /// Limit on slow rounds. A slow round is one that leaves more than 7/8 of its items. All slow rounds together may
  /// visit `slow_rounds` times the number of items of the graph. After that, groups are formed from consecutive items
  /// instead. Two values are special:
  /// - 0: groups are formed from consecutive items after the first slow round, which gives the fewest levels.
  /// - Infinity: there is no limit, as in the paper. This can take quadratic time and give n / M^l levels.
  double slow_rounds = 1;
};

/// A recursive partition, in which the items of a group can be groups themselves. An id below PartitionGraph::items is
/// a given item. The id items + i is groups[i].
struct Partition {
  /// Members of each group, in an order in which they can run. Groups of lower levels come first.
  std::vector<std::vector<std::int32_t>> groups;
  std::vector<std::int32_t> top;  ///< items of the top level, in an order in which they can run
  std::int32_t levels = 1;        ///< number of levels, including the top level
};

/// Finds the immediate dominator of each item, in the graph with a virtual source before all items that read nothing.
/// The immediate dominator of an item is the last item before it that is on all paths from the source to it. -1: the
/// immediate dominator is the source. O((n + m) log n).
std::vector<std::int32_t> immediate_dominators(const PartitionGraph& graph);

/// Partitions the graph bottom-up by H-Partition, Algorithm 1 of Gusak et al. 2025. A round works as follows:
/// - The candidate groups are the sets of all nodes between a node and its immediate dominator.
/// - The candidate of least score becomes a group. Each candidate that shares nodes with the group is extended by the
/// whole group or dropped. This is repeated until no candidate is left or few enough items are left.
/// - The groups become items of the next round.
///
/// All groups are convex, so each level is acyclic. Consecutive items become groups in three cases: no candidate is
/// left while there are still too many items; slow rounds exceed their limit; `watch` expires. Near-linear: O((n + m)
/// M^l log n). docs/remat/hiremate.md explains the choices that the paper leaves open. Throws core::InputError if
/// most_top < 1, most_lower < 2, alpha is not finite, or slow_rounds is not >= 0.
Partition h_partition(const PartitionGraph& graph, const PartitionOptions& options, core::Stopwatch& watch);

/// Partitions the graph into groups of at most `longest` consecutive items. The boundaries are where the fewest bytes
/// are live. Afterwards forms groups of consecutive groups until there are at most `most_top`. This gives few levels
/// and groups of similar size. It suits graphs whose order follows their structure. O(m + n longest). Throws as
/// h_partition() does.
Partition partition_into_runs(const PartitionGraph& graph, std::int32_t most_top, std::int32_t longest);

}  // namespace cairn::solvers
