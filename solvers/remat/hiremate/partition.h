#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"

namespace cairn::solvers {

/// Describes a graph in the form that H-Partition uses: items, numbered in an order in which they can run, and the
/// values that items pass to each other. An item is a layer of nodes.
struct PartitionGraph {
  struct Value {
    std::int64_t bytes = 0;
    std::int32_t maker = 0;
    std::vector<std::int32_t> readers;  ///< items that read the value; ascending, distinct, all > maker
  };
  std::int32_t items = 0;
  std::vector<Value> values;
};

struct PartitionOptions {
  std::int32_t most_top = 20;    ///< largest number of items on the top level (M^t)
  std::int32_t most_lower = 10;  ///< largest number of items in a group (M^l)
  /// Exponent in the score of a group (equation 1 of Gusak et al. 2025). The score multiplies the bytes that cross the
  /// group's boundary by `(g / i)^alpha`, where the group consists of i items of the current round that stand for g
  /// given items.
  double alpha = 0.5;
  /// Limit on slow rounds (see h_partition()), which reduce the number of items by less than an eighth. The sum of the
  /// numbers of items over all slow rounds may be at most `slow_rounds` times the number of given items. After that, a
  /// round forms groups of consecutive items instead. Two values are special:
  /// - 0: groups of consecutive items are formed after the first slow round, which gives the fewest levels.
  /// - Infinity: there is no limit, as in the paper. This can take quadratic time and give n / M^l levels for n items.
  double slow_rounds = 1;
};

/// Describes a recursive partition, in which the members of a group can be groups themselves. A member is given by its
/// id. An id below PartitionGraph::items is a given item. The id `items + i` is groups[i].
struct Partition {
  /// Members of each group, in an order in which they can run. Groups of lower levels come first.
  std::vector<std::vector<std::int32_t>> groups;
  std::vector<std::int32_t> top;  ///< members of the top level, in an order in which they can run
  std::int32_t levels = 1;        ///< number of levels, including the top level
};

/// Finds the immediate dominator of each item, in the graph with a virtual source before all items that read nothing.
/// The dominators of an item are the items that lie on all paths from the source to it. The immediate dominator is the
/// last of these before the item itself. -1: the immediate dominator is the source. O((n + m) log n) for n items and m
/// readers of values.
std::vector<std::int32_t> immediate_dominators(const PartitionGraph& graph);

/// Partitions the graph bottom-up by H-Partition, Algorithm 1 of Gusak et al. 2025. A round works as follows:
/// - Each item gives candidates for groups: the items on all paths from its immediate dominator to it. There are four
///   variants, with and without the item and with and without the dominator.
/// - The candidate of least score becomes a group. Each candidate that overlaps with the group is extended by the whole
///   group, or dropped if it would be too large. This is repeated until no candidate is left or few enough items are
///   left.
/// - The groups become items of the next round.
///
/// All groups are convex, so each level is acyclic. Consecutive items become groups in three cases: no candidate is
/// left while there are still too many items; slow rounds exceed their limit; `watch` expires. Takes nearly linear
/// time, O((n + m) M^l log n) for n items and m readers of values. docs/remat/hiremate.md explains the choices that the
/// paper leaves open. Throws core::InputError if most_top < 1, most_lower < 2, alpha is not finite, or slow_rounds is
/// not >= 0.
Partition h_partition(const PartitionGraph& graph, const PartitionOptions& options, core::Stopwatch& watch);

/// Partitions the graph into groups of at most `longest` consecutive items. The boundaries are chosen where the fewest
/// bytes are in memory. Afterwards joins consecutive groups to larger groups until at most `most_top` are left. This
/// gives few levels and groups of similar size, and suits graphs whose input order follows their structure. O(m + n
/// longest) for n items and m readers of values. Throws as h_partition() does.
Partition partition_into_runs(const PartitionGraph& graph, std::int32_t most_top, std::int32_t longest);

}  // namespace cairn::solvers
