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
  std::vector<std::uint8_t> marks(schedule.steps.size(), kIfRead);
  if (keep_first) {
    std::vector<std::uint8_t> seen(graph.node_count(), 0);
    for (std::size_t i = 0; i < marks.size(); ++i) {
      if (std::exchange(seen[schedule.steps[i]], 1) == 0) marks[i] = kAlwaysKept;
    }
  }
  clear_unread(graph, schedule.steps, marks);
  std::vector<NodeId> kept;
  kept.reserve(schedule.steps.size());
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] != kDropped) kept.push_back(schedule.steps[i]);
  }
  return {std::move(kept)};
}

void clear_unread(const Graph& graph, std::span<const NodeId> steps, std::span<std::uint8_t> marks) {
  // The loop goes backwards. needed[v] is set in two cases: a later step reads v, or v is required and no occurrence of
  // v has been met yet.
  std::vector<std::uint8_t> needed(graph.node_count());
  for (NodeId v = 0; v < graph.node_count(); ++v) needed[v] = graph.required(v) ? 1 : 0;
  for (std::size_t i = steps.size(); i-- > 0;) {
    const NodeId v = steps[i];
    if (marks[i] == kIfRead && needed[v] == 0) marks[i] = kDropped;
    if (marks[i] == kDropped) continue;
    needed[v] = 0;
    for (const NodeId u : graph.predecessors(v)) needed[u] = 1;
  }
}

}  // namespace cairn::core
