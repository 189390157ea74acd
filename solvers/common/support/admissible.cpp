#include "cairn/solvers/common/support/admissible.h"

#include <algorithm>

#include "cairn/core/profile.h"
#include "cairn/solvers/common/support/transferable.h"

namespace cairn::solvers {

bool admissible(const core::Graph& graph, const Scope& scope, const core::Schedule& schedule) {
  if (!scope.contains(graph, schedule)) return false;
  if (schedule.transfers.empty()) return true;
  if (!graph.host_memory()) return false;
  const bool may_move = std::ranges::all_of(schedule.transfers.evicts,
                                            [&](const core::Evict& evict) { return transferable(graph, evict.value); });
  return may_move && core::evaluate(graph, schedule).host_peak <= graph.host_memory()->budget;
}

}  // namespace cairn::solvers
