#pragma once

#include <vector>

#include "cairn/core/graph.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests {

/// Returns a chain that runs through `columns` columns from left to right, then from right to left, and so on, `folds`
/// times in all. Each node reads the previous node. With a probability of `percent`, it also reads the node in its
/// column in each earlier fold. A path decomposition that goes column by column has a width of at most `folds`. A
/// schedule in the order of the chain needs up to folds / 2 * columns values at a time. Sizes and costs are 1 if
/// `units` is set, and random if not.
inline core::Graph folded_chain(Random& random, int folds, int columns, int percent, bool units = true) {
  const auto place = [&](int fold, int column) {
    return static_cast<core::NodeId>(fold * columns + (fold % 2 == 0 ? column : columns - 1 - column));
  };
  std::vector<core::Node> nodes(static_cast<std::size_t>(folds) * static_cast<std::size_t>(columns));
  for (int fold = 0; fold < folds; ++fold) {
    for (int column = 0; column < columns; ++column) {
      const core::NodeId v = place(fold, column);
      core::Node& node = nodes[static_cast<std::size_t>(v)];
      node.size = units ? 1 : random.between(0, 9);
      node.cost = units ? 1 : random.between(0, 4);
      if (v > 0) node.inputs.push_back(v - 1);
      for (int earlier = 0; earlier < fold; ++earlier) {
        const core::NodeId u = place(earlier, column);
        if (u + 1 != v && random.chance(percent)) node.inputs.push_back(u);
      }
    }
  }
  return build_graph(nodes);
}

}  // namespace cairn::tests
