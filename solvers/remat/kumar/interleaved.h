#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

/// This file implements the interleaved schedules of Kumar et al. 2019, appendix A.3. An interleaved schedule describes
/// what has to run before each node of a set X. In this file, a node is given by its index in one fixed topological
/// order, so v < w means that v comes before w.
namespace cairn::solvers {

/// Represents a tuple <sigma, x> of a schedule for a set X of nodes. sigma lists the nodes that have to run before x,
/// if the values of all nodes of X before x are in memory.
struct InterleavedTuple {
  std::vector<std::int32_t> schedule;  ///< sigma: the nodes to run before x
  std::int32_t node = 0;               ///< x
  bool operator==(const InterleavedTuple&) const = default;
};

/// An interleaved schedule (Definition 15): a set of tuples for a set X. Tuples of the same node x are stored in the
/// order in which they run.
using InterleavedSchedule = std::vector<InterleavedTuple>;

/// Adds the tuples of `other` (I') to those of `schedule` (I). For a node that has tuples in both, the tuples of I come
/// first.
inline void unite(InterleavedSchedule& schedule, InterleavedSchedule other) {
  schedule.insert(schedule.end(), std::make_move_iterator(other.begin()), std::make_move_iterator(other.end()));
}

/// Merges the tuples of each node into one tuple (Merge), and sorts the tuples by node. O(l log l) for l tuples.
inline InterleavedSchedule merge(InterleavedSchedule schedule) {
  std::ranges::stable_sort(schedule, {}, &InterleavedTuple::node);
  InterleavedSchedule merged;
  for (InterleavedTuple& tuple : schedule) {
    if (merged.empty() || merged.back().node != tuple.node) {
      merged.push_back(std::move(tuple));
    } else {
      auto& joined = merged.back().schedule;
      joined.insert(joined.end(), tuple.schedule.begin(), tuple.schedule.end());
    }
  }
  return merged;
}

/// Makes one tuple for each node of `nodes` (X'). This is Condense(X', I) for I = `schedule`. The nodes must be
/// ascending and occur in I. The tuple of a node contains everything in I between the node before it in `nodes` and the
/// node itself. What comes after the last node of `nodes` is left out.
inline InterleavedSchedule condense(std::span<const std::int32_t> nodes, InterleavedSchedule schedule) {
  InterleavedSchedule condensed;
  std::vector<std::int32_t> steps;
  for (InterleavedTuple& tuple : merge(std::move(schedule))) {
    if (condensed.size() == nodes.size()) break;
    steps.insert(steps.end(), tuple.schedule.begin(), tuple.schedule.end());
    if (tuple.node == nodes[condensed.size()]) {
      condensed.push_back({std::exchange(steps, {}), tuple.node});
    } else {
      steps.push_back(tuple.node);
    }
  }
  return condensed;
}

/// Returns the schedule as one sequence of nodes (Flatten): sigma_1 x_1 sigma_2 x_2 ..., by ascending x.
inline std::vector<std::int32_t> flatten(InterleavedSchedule schedule) {
  std::vector<std::int32_t> steps;
  for (const InterleavedTuple& tuple : merge(std::move(schedule))) {
    steps.insert(steps.end(), tuple.schedule.begin(), tuple.schedule.end());
    steps.push_back(tuple.node);
  }
  return steps;
}

}  // namespace cairn::solvers
