#include "cairn/core/schedule.h"

#include <algorithm>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/internal/trace.h"
#include "cairn/core/internal/transfer_trace.h"
#include "cairn/core/profile.h"

namespace cairn::core {

Schedule baseline_schedule(const Graph& graph) { return {{graph.input_order().begin(), graph.input_order().end()}}; }

std::vector<Lifetime> lifetimes(const Graph& graph, const Schedule& schedule) {
  if (!schedule.transfers.empty()) {
    TransferTrace trace = trace_transfers(graph, schedule);
    if (trace.defect.kind != Defect::Kind::none) {
      throw InputError("invalid schedule: " + describe(graph, trace.defect));
    }
    return std::move(trace.lives);
  }
  std::vector<std::int32_t> latest, last_read;
  const Defect defect = trace_last_reads(graph.view(), schedule.steps, latest, last_read);
  if (defect.kind != Defect::Kind::none) throw InputError("invalid schedule: " + describe(graph, defect));
  std::vector<Lifetime> lives;
  lives.reserve(last_read.size());
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    const NodeId v = schedule.steps[i];
    for (std::int32_t output = 0; output < graph.output_count(v); ++output) {
      lives.push_back({v, i, last_read[lives.size()], output});
    }
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

Schedule run_pinned_once(const Graph& graph, Schedule schedule) {
  if (!graph.has_pinned()) return schedule;
  std::vector<std::uint8_t> seen(graph.node_count(), 0);
  std::erase_if(schedule.steps, [&](NodeId v) { return std::exchange(seen[v], 1) != 0 && graph.pinned(v); });
  return schedule;
}

Schedule drop_unread(const Graph& graph, const Schedule& schedule, bool keep_first) {
  // The loop goes backwards. needed[v] is set in two cases: a later step reads v, or v is required and no occurrence of
  // v has been met yet.
  std::vector<std::uint8_t> needed(graph.node_count());
  for (NodeId v = 0; v < graph.node_count(); ++v) needed[v] = graph.required(v);
  std::vector<std::int32_t> runs(keep_first ? graph.node_count() : 0);
  if (keep_first) {
    for (const NodeId v : schedule.steps) ++runs[v];
  }
  std::vector<NodeId> kept;
  kept.reserve(schedule.steps.size());
  for (auto step = schedule.steps.rbegin(); step != schedule.steps.rend(); ++step) {
    const bool first = keep_first && --runs[*step] == 0;
    if (!needed[*step] && !first) continue;
    kept.push_back(*step);
    needed[*step] = 0;
    for (const NodeId u : graph.predecessors(*step)) needed[u] = 1;
  }
  std::reverse(kept.begin(), kept.end());
  return {std::move(kept)};
}

}  // namespace cairn::core
