#include "cairn/core/schedule.h"

#include <algorithm>

#include "cairn/core/error.h"
#include "cairn/core/internal/trace.h"
#include "cairn/core/profile.h"

namespace cairn::core {

Schedule baseline_schedule(const Graph& graph) { return {{graph.input_order().begin(), graph.input_order().end()}}; }

std::vector<Lifetime> lifetimes(const Graph& graph, const Schedule& schedule) {
  std::vector<std::int32_t> latest, last_read;
  const Defect defect = trace_last_reads(graph.view(), schedule.steps, latest, last_read);
  if (defect.kind != Defect::Kind::none) throw InputError("invalid schedule: " + describe(graph, defect));
  std::vector<Lifetime> lives(schedule.steps.size());
  for (std::size_t i = 0; i < lives.size(); ++i) {
    lives[i] = {schedule.steps[i], static_cast<std::int64_t>(i), last_read[i]};
  }
  return lives;
}

std::int64_t recomputed_steps(const Graph& graph, const Schedule& schedule) {
  std::vector<std::uint8_t> seen(graph.node_count(), 0);
  std::int64_t repeats = 0;
  for (const NodeId v : schedule.steps) {
    repeats += seen[v];
    seen[v] = 1;
  }
  return repeats;
}

Schedule drop_unread(const Graph& graph, const Schedule& schedule) {
  // needed[v]: somebody later reads v from an occurrence that is still to be found, walking backwards.
  std::vector<std::uint8_t> needed(graph.node_count());
  for (NodeId v = 0; v < graph.node_count(); ++v) needed[v] = graph.required(v);
  std::vector<NodeId> kept;
  kept.reserve(schedule.steps.size());
  for (auto step = schedule.steps.rbegin(); step != schedule.steps.rend(); ++step) {
    if (!needed[*step]) continue;
    kept.push_back(*step);
    needed[*step] = 0;
    for (const NodeId u : graph.inputs(*step)) needed[u] = 1;
  }
  std::reverse(kept.begin(), kept.end());
  return {std::move(kept)};
}

}  // namespace cairn::core
