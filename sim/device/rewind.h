#pragma once

#include <cstdint>

#include "cairn/core/machine/team.h"
#include "cairn/sim/device/graph_tables.h"

namespace cairn::sim::device {

/// What became of one candidate.
struct Outcome {
  bool valid = false;
  std::int64_t peak = 0, cost = 0;
  std::int32_t peak_step = -1;
};

/// sim::Outcomes as plain arrays.
struct OutcomesView {
  std::uint8_t* valid = nullptr;
  std::int64_t* peak = nullptr;
  std::int64_t* cost = nullptr;
  std::int32_t* peak_step = nullptr;

  CAIRN_HD void put(std::int64_t c, const Outcome& outcome) const {
    valid[c] = outcome.valid ? 1 : 0;
    peak[c] = outcome.peak;
    cost[c] = outcome.cost;
    peak_step[c] = outcome.peak_step;
  }
};

/// For rewind() where only the outcome is asked for.
struct IgnoreSteps {
  CAIRN_HD void operator()(std::int32_t, std::int64_t, std::int64_t) const {}
};

CAIRN_HD inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  const std::uint64_t sum = static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b);  // both >= 0
  return sum >> 63 != 0 ? INT64_MAX : static_cast<std::int64_t>(sum);
}

/// Any schedule, recomputation included: from the last step back to the first, keeping who is in memory. A node is in
/// memory before step i if it is after it, or if step i reads it, unless step i computes it. So
///     after(i - 1) = after(i) - (held after i ? size(u_i) : 0) + sizes of inputs of u_i that are not held after i
///     during(i)    = after(i - 1) + size(u_i) + scratch(u_i)
/// and the schedule is valid if nobody is in memory before the first step and whoever must stand in it does.
///
/// `pending` is room for node_count words that the team shares: NodeRecord::held of a node that is not in memory, else
/// 0. visit(i, during, after) is called by every thread for every step, the last one first, also where the schedule
/// turns out to be invalid. A team's threads share the inputs of a step. O(n + T + sum of in-degrees).
template <class Id, class Team, class Visit>
CAIRN_HD Outcome rewind(const Team& team, const TablesView<Id>& graph, const Id* steps, std::int32_t length,
                        std::uint64_t* pending, const Visit& visit) {
  const auto n = static_cast<std::uint32_t>(graph.node_count);
  for (std::int32_t v = team.rank(); v < graph.node_count; v += team.size()) pending[v] = graph.at_end[v];
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
    for (std::int32_t e = node.begin + team.rank(); e < node.end; e += team.size()) {
      const std::uint32_t u = graph.inputs[e];
      read += pending[u];
      pending[u] = 0;
    }
    live += team.reduce(read, core::Sum());
    const std::int64_t during = static_cast<std::int64_t>(live & ~kMark) + node.extra;
    if (during >= peak) {
      peak = during;
      peak_step = i;
    }
    cost = saturating_add(cost, node.cost);
    visit(i, during, after);
  }

  bool missing = false;
  for (std::int32_t v = team.rank(); v < graph.node_count; v += team.size()) missing |= pending[v] == 0;
  if (team.reduce(missing ? 1 : 0, core::Or()) != 0) return outcome;
  outcome.valid = true;
  outcome.peak = length > 0 ? peak : 0;
  outcome.cost = cost;
  outcome.peak_step = peak_step;
  return outcome;
}

}  // namespace cairn::sim::device
