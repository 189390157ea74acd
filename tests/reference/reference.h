#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"

/// These are the definitions of the memory model, written literally and without regard to speed. All fast functions are
/// tested against them. The definitions use the accessors of Graph and the plain structs of schedule.h and profile.h,
/// and share no code with the functions that they test. Steps count from 0. A run of a node is identified by its step.
/// Memory is in bytes.
namespace cairn::core::reference {

/// Returns whether `value` is an input of the node `reader`. Takes time linear in the number of inputs.
inline bool reads(const Graph& graph, NodeId reader, ValueId value) {
  for (const ValueId input : graph.inputs(reader)) {
    if (input == value) return true;
  }
  return false;
}

/// Returns whether one of the steps from `begin` to end - 1 runs `node`. O(end - begin).
inline bool stands(const Schedule& schedule, NodeId node, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    if (schedule.steps[i] == node) return true;
  }
  return false;
}

/// Returns the first defect of a schedule, in the order of the steps. A schedule is valid under three conditions: the
/// producers of a step's inputs run somewhere before the step; every node with a kept output and every node without
/// readers runs; and no pinned node runs twice. O(T^2 * in-degree) for T steps.
inline Defect find_defect(const Graph& graph, const Schedule& schedule) {
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    const NodeId node = schedule.steps[i];
    if (node < 0 || node >= graph.node_count()) return {Defect::Kind::unknown_node, i, node, kNoNode};
    for (const ValueId input : graph.inputs(node)) {
      const NodeId producer = graph.producer(input);
      if (!stands(schedule, producer, 0, i)) return {Defect::Kind::missing_input, i, node, producer};
    }
    if (graph.pinned(node) && stands(schedule, node, 0, i)) return {Defect::Kind::pinned_again, i, node, kNoNode};
  }
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    bool wanted = true;
    for (const ValueId output : graph.outputs(node)) wanted = wanted && graph.readers(output).empty();
    for (const ValueId output : graph.outputs(node)) wanted = wanted || graph.value_kept(output);
    if (wanted && !stands(schedule, node, 0, schedule.length())) {
      return {Defect::Kind::missing_node, -1, node, kNoNode};
    }
  }
  return {};
}

inline bool valid(const Graph& graph, const Schedule& schedule) {
  return find_defect(graph, schedule).kind == Defect::Kind::none;
}

/// An output of a node, as one run of the node made it.
struct MadeValue {
  std::int64_t step = 0;  ///< the step that made it
  ValueId value = kNoValue;
  bool operator==(const MadeValue&) const = default;
};

/// Returns whether a value is read at step `from` or later, before its node runs again. Returns true also if the value
/// is kept and its node does not run again. This function and all below require a valid schedule. O(T * in-degree) for
/// T steps.
inline bool needed(const Graph& graph, const Schedule& schedule, MadeValue made, std::int64_t from) {
  const NodeId node = schedule.steps[made.step];
  for (std::int64_t i = made.step + 1; i < schedule.length(); ++i) {
    if (schedule.steps[i] == node) return false;
    if (i >= from && reads(graph, schedule.steps[i], made.value)) return true;
  }
  return graph.value_kept(made.value);
}

/// Returns live(i): the values made before step i that are needed from step i on (see needed()). They are in the order
/// of the steps that made them. Values of the same step are in the order of the outputs.
inline std::vector<MadeValue> live(const Graph& graph, const Schedule& schedule, std::int64_t step) {
  std::vector<MadeValue> values;
  for (std::int64_t j = 0; j < step; ++j) {
    for (const ValueId value : graph.outputs(schedule.steps[j])) {
      if (needed(graph, schedule, {j, value}, step)) values.push_back({j, value});
    }
  }
  return values;
}

/// Returns the sum of the sizes of all outputs of a node, in bytes.
inline std::int64_t output_bytes(const Graph& graph, NodeId node) {
  std::int64_t bytes = 0;
  for (const ValueId value : graph.outputs(node)) bytes += graph.value_size(value);
  return bytes;
}

/// Returns during(i): the sizes of the values in live(i) and of the outputs of step i, plus the scratch of its node.
inline std::int64_t during(const Graph& graph, const Schedule& schedule, std::int64_t step) {
  const NodeId node = schedule.steps[step];
  std::int64_t bytes = output_bytes(graph, node) + graph.scratch(node);
  for (const MadeValue& made : live(graph, schedule, step)) bytes += graph.value_size(made.value);
  return bytes;
}

/// Returns after(i): the sizes of all values that are kept or are read after step i.
inline std::int64_t after(const Graph& graph, const Schedule& schedule, std::int64_t step) {
  std::int64_t bytes = 0;
  for (const MadeValue& made : live(graph, schedule, step + 1)) bytes += graph.value_size(made.value);
  return bytes;
}

/// Returns the memory profile of T steps: (0, during(0), after(0), ..., during(T - 1), after(T - 1)).
inline std::vector<std::int64_t> profile(const Graph& graph, const Schedule& schedule) {
  std::vector<std::int64_t> bytes{0};
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    bytes.push_back(reference::during(graph, schedule, i));
    bytes.push_back(reference::after(graph, schedule, i));
  }
  return bytes;
}

/// Returns the largest during(i) of all steps i, or 0 for the empty schedule.
inline std::int64_t peak(const Graph& graph, const Schedule& schedule) {
  std::int64_t highest = 0;
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    highest = std::max(highest, reference::during(graph, schedule, i));
  }
  return highest;
}

/// Returns the first step that reaches the peak, or -1 for the empty schedule.
inline std::int64_t peak_step(const Graph& graph, const Schedule& schedule) {
  const std::int64_t highest = reference::peak(graph, schedule);
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    if (reference::during(graph, schedule, i) == highest) return i;
  }
  return -1;
}

/// Returns the sum of the costs of the nodes at all steps.
inline std::int64_t cost(const Graph& graph, const Schedule& schedule) {
  std::int64_t sum = 0;
  for (const NodeId node : schedule.steps) sum += graph.cost(node);
  return sum;
}

/// Returns the number of steps whose node has already run at an earlier step.
inline std::int64_t recomputed(const Schedule& schedule) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < schedule.length(); ++i) count += stands(schedule, schedule.steps[i], 0, i);
  return count;
}

/// Returns the lifetime of every output of every step. A lifetime goes from the step that makes the value to its last
/// read. If the value is kept and not computed again, the lifetime goes to the end of the schedule. O(T^3 * in-degree).
inline std::vector<Lifetime> lifetimes(const Graph& graph, const Schedule& schedule) {
  std::vector<Lifetime> result;
  for (std::int64_t first = 0; first < schedule.length(); ++first) {
    for (const ValueId value : graph.outputs(schedule.steps[first])) {
      std::int64_t last = first;
      for (std::int64_t i = first + 1; i <= schedule.length(); ++i) {
        if (needed(graph, schedule, {first, value}, i)) last = i;
      }
      result.push_back({schedule.steps[first], first, last, graph.output_ref(value).output});
    }
  }
  return result;
}

/// Returns a lower bound on the peak of any schedule. It is the maximum of two kinds of sums: a node's inputs, outputs
/// and scratch, which are in memory at once while the node runs; and all kept values, which are in memory at the end.
inline std::int64_t peak_lower_bound(const Graph& graph) {
  std::int64_t bound = 0, kept = 0;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    std::int64_t working_set = output_bytes(graph, node) + graph.scratch(node);
    for (const ValueId input : graph.inputs(node)) working_set += graph.value_size(input);
    bound = std::max(bound, working_set);
    for (const ValueId value : graph.outputs(node)) kept += graph.value_kept(value) ? graph.value_size(value) : 0;
  }
  return std::max(bound, kept);
}

/// Repeatedly removes a run whose outputs nobody reads, unless it is the last run of a node that must be in the
/// schedule. The order of removal does not matter, because a removal gives no other run a new reader.
inline Schedule drop_unread(const Graph& graph, Schedule schedule) {
  const auto removable = [&](std::int64_t j) {
    const NodeId node = schedule.steps[j];
    if (!stands(schedule, node, j + 1, schedule.length()) && graph.required(node)) return false;
    for (const ValueId value : graph.outputs(node)) {
      if (needed(graph, schedule, {j, value}, j + 1)) return false;
    }
    return true;
  };
  std::int64_t j = 0;
  while (j < schedule.length()) {
    if (removable(j)) {
      schedule.steps.erase(schedule.steps.begin() + j);
      j = 0;
    } else {
      ++j;
    }
  }
  return schedule;
}

/// Returns the least peak over all topological orders, i.e. without recomputation. The search goes over sets of nodes,
/// because the memory after a set of nodes has run does not depend on their order. O(2^n * (n + m)) for n nodes and m
/// edges. Throws std::invalid_argument above 20 nodes.
inline std::int64_t least_peak_without_recomputation(const Graph& graph) {
  const NodeId n = graph.node_count();
  if (n > 20) throw std::invalid_argument("least_peak_without_recomputation is for at most 20 nodes");
  const auto contains = [](std::uint32_t set, NodeId node) { return (set >> node & 1U) != 0; };
  const auto held_after = [&](std::uint32_t set) {
    std::int64_t bytes = 0;
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      if (!contains(set, graph.producer(value))) continue;
      bool held = graph.value_kept(value);
      for (const NodeId reader : graph.readers(value)) held = held || !contains(set, reader);
      if (held) bytes += graph.value_size(value);
    }
    return bytes;
  };
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  const std::uint32_t all = (1U << n) - 1;
  std::vector<std::int64_t> least(static_cast<std::size_t>(all) + 1, kNever);
  least[0] = 0;
  for (std::uint32_t set = 0; set < all; ++set) {
    if (least[set] == kNever) continue;
    const std::int64_t held = held_after(set);
    for (NodeId node = 0; node < n; ++node) {
      bool ready = !contains(set, node);
      for (const ValueId input : graph.inputs(node)) ready = ready && contains(set, graph.producer(input));
      if (!ready) continue;
      std::int64_t& next = least[set | 1U << node];
      next = std::min(next, std::max(least[set], held + output_bytes(graph, node) + graph.scratch(node)));
    }
  }
  return least[all];
}

/// Returns a schedule of least cost with a peak within `budget`, over all schedules with any amount of recomputation.
/// Among schedules of equal cost, it has the least length. Returns nothing if no schedule fits.
///
/// This is a uniform-cost search. A state consists of the values in memory and of a set of nodes that have run. The set
/// needs to contain only nodes that may not run again (pinned ones), or that must run at least once although nothing is
/// read or kept of them. One move drops a value at no cost. The other move runs a node whose inputs are in memory and
/// whose outputs are not. The condition on the outputs loses no schedule, because an output can be dropped before its
/// node runs again. There are at most about 4^n * n states and moves for n nodes. Throws std::invalid_argument above 12
/// nodes or 24 values.
inline std::optional<Schedule> cheapest_within(const Graph& graph, std::int64_t budget) {
  const NodeId n = graph.node_count();
  if (n > 12 || graph.value_count() > 24) {
    throw std::invalid_argument("cheapest_within is for at most 12 nodes and 24 values");
  }
  using State = std::pair<std::uint32_t, std::uint32_t>;   // values in memory, and remembered nodes that have run
  using Distance = std::pair<std::int64_t, std::int64_t>;  // cost, number of steps
  struct Arrival {
    Distance distance;
    State from;
    NodeId ran;  // kNoNode if the move dropped a value
  };
  std::uint32_t kept = 0;
  std::uint32_t remembered = 0;  // pinned nodes, and nodes of which nothing is read or kept
  std::vector<std::uint32_t> inputs(static_cast<std::size_t>(n), 0), outputs(static_cast<std::size_t>(n), 0);
  for (NodeId node = 0; node < n; ++node) {
    bool read_or_kept = false;
    for (const ValueId value : graph.outputs(node)) {
      outputs[node] |= 1U << value;
      if (graph.value_kept(value)) kept |= 1U << value;
      read_or_kept = read_or_kept || graph.value_kept(value) || !graph.readers(value).empty();
    }
    for (const ValueId value : graph.inputs(node)) inputs[node] |= 1U << value;
    if (graph.pinned(node) || !read_or_kept) remembered |= 1U << node;
  }
  const auto bytes_of = [&](std::uint32_t set) {
    std::int64_t bytes = 0;
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      bytes += (set >> value & 1U) != 0 ? graph.value_size(value) : 0;
    }
    return bytes;
  };

  const State start{0, 0};
  std::map<State, Arrival> arrivals{{start, {{0, 0}, start, kNoNode}}};
  using Entry = std::pair<Distance, State>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.push({{0, 0}, start});
  while (!queue.empty()) {
    const auto [distance, state] = queue.top();
    queue.pop();
    if (arrivals.at(state).distance < distance) continue;
    const auto [memory, ran] = state;
    if ((memory & kept) == kept && ran == remembered) {
      Schedule schedule;
      for (State at = state; at != start; at = arrivals.at(at).from) {
        if (arrivals.at(at).ran != kNoNode) schedule.steps.push_back(arrivals.at(at).ran);
      }
      std::reverse(schedule.steps.begin(), schedule.steps.end());
      return schedule;
    }
    const auto move = [&, from = state](const State& to, const Distance& reached, NodeId node) {
      const auto found = arrivals.find(to);
      if (found != arrivals.end() && found->second.distance <= reached) return;
      arrivals[to] = {reached, from, node};
      queue.push({reached, to});
    };
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      if ((memory >> value & 1U) != 0) move({memory & ~(1U << value), ran}, distance, kNoNode);
    }
    for (NodeId node = 0; node < n; ++node) {
      const std::uint32_t bit = 1U << node;
      if ((memory & outputs[node]) != 0 || (memory & inputs[node]) != inputs[node]) continue;
      if (graph.pinned(node) && (ran & bit) != 0) continue;
      if (bytes_of(memory) + output_bytes(graph, node) + graph.scratch(node) > budget) continue;
      move({memory | outputs[node], ran | (bit & remembered)}, {distance.first + graph.cost(node), distance.second + 1},
           node);
    }
  }
  return std::nullopt;
}

/// Returns the least peak over all schedules with any amount of recomputation, i.e. the least budget within which
/// cheapest_within() finds a schedule.
inline std::int64_t least_peak(const Graph& graph) {
  std::int64_t low = 0, high = least_peak_without_recomputation(graph);
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (cheapest_within(graph, middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace cairn::core::reference
