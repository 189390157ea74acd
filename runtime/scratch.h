#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// This file chooses between several ways to execute an op, where more scratch saves time.
namespace cairn::runtime {

/// A way to execute an op.
struct ScratchVariant {
  std::int64_t scratch = 0;  ///< bytes of scratch with which the op is executed in this way
  double ms = 0;             ///< measured time in milliseconds; 0 if it is not known
  bool usual = false;        ///< whether the op is executed in this way by default
};

/// A schedule, and the largest number of bytes that may be in memory during any of its steps.
struct MemoryLimit {
  const core::Schedule& schedule;
  std::int64_t bytes = 0;
};

/// Gives nodes more scratch if that makes them faster and if this memory is otherwise unused while they run. For each
/// node, takes the fastest of those variants with which no step of the given schedules exceeds the limit of its
/// schedule. A node keeps its scratch if none of these variants is faster than the usual one. A node's scratch takes
/// memory only while the node itself is executed, so the choices for different nodes are independent, and the result is
/// the best possible. With the new scratch, the peak of a schedule is at most the larger of its former peak and its
/// limit. The cost of a schedule is unchanged.
///
/// variants(v) must return the variants of node v. If it returns an empty list, the node's scratch stays. Otherwise,
/// the node's scratch in `graph` must be that of the usual variant. `variants` is not called for nodes with negative
/// scratch. The costs of nodes are not changed, so that bounds on the cost of schedules of `graph` also hold for the
/// returned graph. Throws what `variants` throws. O(nodes + steps), besides the calls of `variants`.
core::Graph use_free_memory(const core::Graph& graph, std::span<const MemoryLimit> limits,
                            const std::function<std::vector<ScratchVariant>(core::NodeId)>& variants);

}  // namespace cairn::runtime
