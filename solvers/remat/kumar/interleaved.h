#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

/// Interleaved schedules of Kumar et al. 2019, appendix A.3. Nodes are given by their places in one topological order,
/// so v < w means that v comes before w.
namespace cairn::solvers {

/// A tuple <sigma, x>: the nodes to run so that x can run, if every node of X (the set that the schedule is for) before
/// x is known.
struct InterleavedTuple {
  std::vector<std::int32_t> schedule;  ///< nodes sigma to run, without x itself
  std::int32_t node = 0;               ///< the node x
  bool operator==(const InterleavedTuple&) const = default;
};

/// An interleaved schedule (Definition 15): a set of tuples. Tuples of the same node are in the order in which they
/// run.
using InterleavedSchedule = std::vector<InterleavedTuple>;

/// Adds the tuples of I' to those of I; for the same node, the tuples of I come first.
inline void unite(InterleavedSchedule& schedule, InterleavedSchedule other) {
  schedule.insert(schedule.end(), std::make_move_iterator(other.begin()), std::make_move_iterator(other.end()));
}

/// Merges the tuples of each node to one (Merge), by ascending node. O(length log length).
inline InterleavedSchedule merge(InterleavedSchedule schedule) {
  std::stable_sort(schedule.begin(), schedule.end(),
                   [](const InterleavedTuple& a, const InterleavedTuple& b) { return a.node < b.node; });
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

/// Makes a tuple for each of `nodes` (ascending, all of them in I): Condense(X', I). Its schedule contains the nodes of
/// I that come before it and after the previous one; nodes after the last one are left out.
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

/// Writes the schedule out as one sequence of nodes (Flatten): sigma_1 x_1 sigma_2 x_2 ...
inline std::vector<std::int32_t> flatten(InterleavedSchedule schedule) {
  std::vector<std::int32_t> steps;
  for (const InterleavedTuple& tuple : merge(std::move(schedule))) {
    steps.insert(steps.end(), tuple.schedule.begin(), tuple.schedule.end());
    steps.push_back(tuple.node);
  }
  return steps;
}

}  // namespace cairn::solvers
