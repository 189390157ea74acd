#include "cairn/sim/simulator.h"

#include <string>

#include "cairn/core/error.h"
#include "cairn/sim/support/dominance.h"

namespace cairn::sim {

std::vector<std::int64_t> Simulator::non_dominated(const CanonicalBatch& profiles) {
  return sim::non_dominated(profiles);
}

void require_same_graph(const ScheduleBatch& batch, core::NodeId node_count) {
  if (batch.node_count() == node_count) return;
  throw core::InputError("the batch was made for a graph of " + std::to_string(batch.node_count()) +
                         " nodes, and this one has " + std::to_string(node_count) +
                         ": make it as ScheduleBatch(graph.node_count())");
}

void require_no_transfers(const ScheduleBatch& batch) {
  if (batch.has_transfers())
    throw core::InputError("segments are found without profiles only if nothing is transferred");
}

Profiles room_for_profiles(Simulator& simulator, const ScheduleBatch& batch) {
  Outcomes outcomes;
  simulator.evaluate(batch, outcomes);
  Profiles profiles;
  for (std::int64_t c = 0; c < batch.count(); ++c) {
    profiles.begin.push_back(profiles.begin.back() + (outcomes.valid[c] != 0 ? 2 * batch.length(c) + 1 : 0));
  }
  profiles.value.resize(static_cast<std::size_t>(profiles.begin.back()));
  return profiles;
}

}  // namespace cairn::sim
