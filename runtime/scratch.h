#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// Ops that can be executed in several ways, which trade scratch for time.
namespace cairn::runtime {

/// A way to execute an op.
struct ScratchVariant {
  std::int64_t scratch = 0;  ///< bytes of scratch with which the op is executed in this way
  double ms = 0;             ///< measured time in milliseconds; 0 if it is not known
  bool usual = false;        ///< whether the op is executed in this way by default
};

/// A schedule, and the most bytes that may be in memory during any of its steps.
struct MemoryLimit {
  const core::Schedule& schedule;
  std::int64_t bytes = 0;
};

/// Gives nodes more scratch if that makes them faster and if this memory would otherwise be unused while they run. Each
/// node gets the fastest of its variants with which no step of the given schedules exceeds the schedule's limit. A node
/// keeps its scratch if no such variant is faster than the usual one. The choices for different nodes are independent,
/// because a node's scratch takes memory only while the node itself is executed. So the result is the best possible.
/// With the new scratch, the peak of a schedule is at most the larger of its former peak and its limit. Its cost is
/// unchanged.
///
/// `variants` returns the variants of a node. If it returns none, the node's scratch stays. Otherwise, the node's
/// scratch in `graph` must be that of the usual variant. `variants` is not called for nodes with negative scratch. The
/// costs of nodes stay, too, so that bounds on the cost of schedules of `graph` also hold for the returned graph.
/// Throws what `variants` throws. O(nodes + steps), besides the calls of `variants`.
core::Graph use_free_memory(const core::Graph& graph, std::span<const MemoryLimit> limits,
                            const std::function<std::vector<ScratchVariant>(core::NodeId)>& variants);

}  // namespace cairn::runtime
