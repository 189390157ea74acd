#pragma once

#include <algorithm>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// Returns whether a search may move x to the host and back: x has bytes and need not stay (Output::stays), its node is
/// not pinned, no output takes over its storage, and x is read or kept. O(readers of x and their outputs).
inline bool transferable(const core::Graph& graph, core::ValueId x) {
  if (graph.value_size(x) == 0 || graph.value_stays(x) || graph.pinned(graph.producer(x))) return false;
  if (graph.readers(x).empty() && !graph.value_kept(x)) return false;
  return std::ranges::none_of(graph.readers(x), [&](core::NodeId reader) {
    return std::ranges::any_of(graph.outputs(reader), [&](core::ValueId y) { return graph.inplace(y) == x; });
  });
}

}  // namespace cairn::solvers
