#pragma once

#include <algorithm>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// Returns whether a search may move the value x to the host and back. This is so if x takes memory, is not marked as
/// staying on the device (Output::stays), is read or kept, and its node is not pinned. No output may be computed in
/// place in the storage of x. O(readers of x and their outputs).
inline bool transferable(const core::Graph& graph, core::ValueId x) {
  if (graph.value_size(x) == 0 || graph.value_stays(x) || graph.pinned(graph.producer(x))) return false;
  if (graph.readers(x).empty() && !graph.value_kept(x)) return false;
  return std::ranges::none_of(graph.readers(x), [&](core::NodeId reader) {
    return std::ranges::any_of(graph.outputs(reader), [&](core::ValueId y) { return graph.inplace(y) == x; });
  });
}

}  // namespace cairn::solvers
