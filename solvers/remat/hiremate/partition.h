#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"

namespace cairn::solvers {

/// A graph in the form that H-Partition uses: items in an order in which they can run, and the values between them.
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
  /// Limit on slow rounds, which are rounds that leave more than 7/8 of their items. Slow rounds together may visit
  /// `slow_rounds` times the number of items of the graph. After that, groups are formed from consecutive items
  /// instead. 0: groups are formed from consecutive items after the first slow round, which gives the fewest levels.
  /// Infinity: no limit, as in the paper; this can take quadratic time and give n / M^l levels.
  double slow_rounds = 1;
};

/// A recursive partition whose items are groups of items. An id below PartitionGraph::items is a given item; the id
/// items + i is groups[i].
struct Partition {
  /// Members of each group, in an order in which they can run. Groups of lower levels come first.
  std::vector<std::vector<std::int32_t>> groups;
  std::vector<std::int32_t> top;  ///< items of the top level, in an order in which they can run
  std::int32_t levels = 1;        ///< number of levels, including the top level
};

/// Finds the immediate dominator of each item in a graph with a virtual source before all items that read nothing. This
/// is the last item before the given item that is on all paths from the source to it. -1: the source itself. O((n + m)
/// log n).
std::vector<std::int32_t> immediate_dominators(const PartitionGraph& graph);

/// Partitions the graph bottom-up by H-Partition, Algorithm 1 of Gusak et al. 2025. A round works as follows:
/// - The candidate groups are the sets of all nodes between a node and its immediate dominator.
/// - The candidate of least score becomes a group. Candidates that share nodes with it take in the whole group or are
///   dropped. This is repeated until no candidate is left or few enough items are left.
/// - The groups become items of the next round.
///
/// All groups are convex, so each level is acyclic. Consecutive items become groups in three cases: no candidate is
/// left and there are still too many items; slow rounds exceed their limit; or `watch` expires. Near-linear: O((n + m)
/// M^l log n). docs/remat/hiremate.md explains the choices that the paper leaves open. Throws core::InputError if
/// most_top < 1, most_lower < 2, alpha is not finite, or slow_rounds is not >= 0.
Partition h_partition(const PartitionGraph& graph, const PartitionOptions& options, core::Stopwatch& watch);

/// Partitions the graph into groups of at most `longest` consecutive items, cut where the fewest bytes are live. Then
/// forms groups of consecutive groups until there are at most `most_top`. This gives few levels and groups of similar
/// size, for graphs whose order follows their structure. O(m + n longest). Throws as h_partition() does.
Partition partition_into_runs(const PartitionGraph& graph, std::int32_t most_top, std::int32_t longest);

}  // namespace cairn::solvers
