#pragma once

#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"

namespace cairn::core {

/// Holds the first defect of a schedule with transfers, and the schedule's lifetimes as lifetimes() returns them. The
/// lifetimes have a meaning only if there is no defect.
struct TransferTrace {
  Defect defect;
  std::vector<Lifetime> lives;
};

/// Traces a schedule with transfers. First checks the transfers alone: all evicts, then all fetches. Then checks the
/// steps in their order, and finally that every copy is read. O(values + steps + transfers + inputs and outputs of all
/// steps).
TransferTrace trace_transfers(const Graph& graph, const Schedule& schedule);

}  // namespace cairn::core
