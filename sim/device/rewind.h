#pragma once

#include <cstdint>

#include "cairn/core/machine/team.h"
#include "cairn/core/support/saturating.h"
#include "cairn/sim/device/graph_tables.h"

namespace cairn::sim::device {

struct Outcome {
  bool valid = false;
  std::int64_t peak = 0, cost = 0;
  std::int32_t peak_step = -1;
};

/// The arrays of sim::Outcomes as plain pointers.
struct OutcomesView {
  std::uint8_t* valid = nullptr;
  std::int64_t* peak = nullptr;
  std::int64_t* cost = nullptr;
  std::int32_t* peak_step = nullptr;  ///< nullptr if they are not wanted

  CAIRN_HD void put(std::int64_t c, const Outcome& outcome) const {
    valid[c] = outcome.valid ? 1 : 0;
    peak[c] = outcome.peak;
    cost[c] = outcome.cost;
    if (peak_step != nullptr) peak_step[c] = outcome.peak_step;
  }
};

/// A `visit` for rewind() that does nothing, for callers that need only the outcome.
struct IgnoreSteps {
  CAIRN_HD void operator()(std::int32_t, std::int64_t, std::int64_t) const {}
};

/// Returns whether no pinned node runs more than once, provided that every node runs.
template <class Id, class Team>
CAIRN_HD bool pins_hold(const Team& team, const TablesView<Id>& graph, const Id* steps, std::int32_t length) {
  if (graph.pinned_count == 0 || length == graph.node_count) return true;
  std::int32_t pinned = 0;
  for (std::int32_t i = team.rank(); i < length; i += team.size()) {
    const std::uint32_t v = steps[i];
    if (v < static_cast<std::uint32_t>(graph.node_count)) pinned += graph.pinned[v];
  }
  return team.reduce(pinned, core::Sum()) == graph.pinned_count;
}

/// Runs the loop of rewind(). kSingle: every node has one output.
template <bool kSingle, class Id, class Team, class Visit>
CAIRN_HD Outcome rewind_steps(const Team& team, const TablesView<Id>& graph, const Id* steps, std::int32_t length,
                              std::uint64_t* pending, const Visit& visit) {
  const auto n = static_cast<std::uint32_t>(graph.node_count);
  for (std::int32_t x = team.rank(); x < graph.value_count; x += team.size()) pending[x] = graph.at_end[x];
  team.sync();

  Outcome outcome;
  std::int64_t peak = -1, cost = 0;
  std::int32_t peak_step = -1;
  auto live = static_cast<std::uint64_t>(graph.kept_bytes);
  for (std::int32_t i = length; i-- > 0;) {
    const std::uint32_t v = steps[i];
    if (v >= n) return outcome;
    const NodeRecord node = graph.nodes[v];
    const auto after = static_cast<std::int64_t>(live & ~kMark);
    live -= node.held - pending[v];
    team.sync();
    if (team.rank() == 0) pending[v] = node.held;
    std::uint64_t read = 0;
    if constexpr (!kSingle) {
      for (std::int32_t x = graph.further_begin[v] + team.rank(); x < graph.further_begin[v + 1]; x += team.size()) {
        const std::uint64_t held = kMark | static_cast<std::uint64_t>(graph.in_bytes.size[x]);
        read -= held - pending[x];
        pending[x] = held;
      }
    }
    for (std::int32_t e = node.begin + team.rank(); e < node.end; e += team.size()) {
      const std::uint32_t x = graph.template input<kSingle>(e);
      read += pending[x];
      pending[x] = 0;
    }
    live += team.reduce(read, core::Sum());
    const std::int64_t during = static_cast<std::int64_t>(live & ~kMark) + node.extra;
    if (during >= peak) {
      peak = during;
      peak_step = i;
    }
    cost = core::saturating_add(cost, node.cost);
    visit(i, during, after);
  }

  bool missing = false;
  for (std::int32_t x = team.rank(); x < graph.value_count; x += team.size()) missing |= pending[x] == 0;
  if (team.reduce(missing ? 1 : 0, core::Or()) != 0) return outcome;
  outcome.valid = true;
  outcome.peak = length > 0 ? peak : 0;
  outcome.cost = cost;
  outcome.peak_step = peak_step;
  return outcome;
}

/// Evaluates any schedule, also with recomputation. Goes from the last step to the first and tracks which values are in
/// memory. A value is in memory before step i if step i reads it, or if it is in memory after step i and step i does
/// not produce it. So, with u_i for the node of step i,
///     after(i - 1) = after(i) - sizes of outputs of u_i that are in memory after i
///                             + sizes of inputs of u_i that are not in memory after i
///     during(i)    = after(i - 1) + sizes of outputs of u_i + scratch(u_i)
/// The schedule is valid if nothing is in memory before the first step, if every required node occurs, and if no pinned
/// node occurs twice.
///
/// `pending` must have room for value_count words, which the team shares. An entry is NodeRecord::held of a value that
/// is not in memory, else 0. Every thread calls visit(i, during, after) for every step, from the last to the first. If
/// the schedule turns out to be invalid at some step, the calls end there. If a pinned node runs again, visit() is not
/// called at all. The threads of the team share the work on the inputs and outputs of a step. Takes
/// O(n + T + sum of in-degrees and outputs) time for T steps.
template <class Id, class Team, class Visit>
CAIRN_HD Outcome rewind(const Team& team, const TablesView<Id>& graph, const Id* steps, std::int32_t length,
                        std::uint64_t* pending, const Visit& visit) {
  if (!pins_hold(team, graph, steps, length)) return {};
  return graph.single_output() ? rewind_steps<true>(team, graph, steps, length, pending, visit)
                               : rewind_steps<false>(team, graph, steps, length, pending, visit);
}

}  // namespace cairn::sim::device
