#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"

namespace cairn::tests {

inline std::vector<core::NodeId> updates_of(const core::Graph& graph) {
  std::vector<core::NodeId> updates;
  for (const core::NodeId v : graph.input_order()) {
    if (graph.op(v) != nullptr && core::is_update(graph.op(v)->kind)) updates.push_back(v);
  }
  return updates;
}

/// Returns, for every node, whether it is in `nodes` or a node in `nodes` needs it as a direct or indirect input.
/// Control edges count as inputs. Paths lead through pinned nodes only if `through_pinned` is set.
inline std::vector<bool> with_inputs(const core::Graph& graph, const std::vector<core::NodeId>& nodes,
                                     bool through_pinned) {
  std::vector<bool> found(static_cast<std::size_t>(graph.node_count()));
  std::vector<core::NodeId> open = nodes;
  for (const core::NodeId v : nodes) found[static_cast<std::size_t>(v)] = true;
  while (!open.empty()) {
    const core::NodeId v = open.back();
    open.pop_back();
    for (const core::ValueId input : graph.inputs(v)) {
      const core::NodeId u = graph.producer(input);
      if (found[static_cast<std::size_t>(u)] || (graph.pinned(u) && !through_pinned)) continue;
      found[static_cast<std::size_t>(u)] = true;
      open.push_back(u);
    }
  }
  return found;
}

/// Returns, for every node, whether some valid schedule runs the node after `update`. The worst case decides: all nodes
/// that need not run before the update run after it, together with all their inputs, which must be computed again. Kept
/// values are computed again, too. Only pinned nodes that have run before the update do not run again.
inline std::vector<bool> may_run_after(const core::Graph& graph, core::NodeId update) {
  const std::vector<bool> before = with_inputs(graph, {update}, true);
  std::vector<core::NodeId> open;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const bool again = graph.keep(v) && !graph.pinned(v);
    if (v != update && (!before[static_cast<std::size_t>(v)] || again)) open.push_back(v);
  }
  return with_inputs(graph, open, false);
}

/// Returns one line for each node that could read a resident tensor after an update has overwritten the tensor.
inline std::string late_readers(const core::Graph& graph) {
  std::string text;
  for (const core::NodeId update : updates_of(graph)) {
    const core::Op& op = *graph.op(update);
    std::set<std::int32_t> overwritten{op.writes};
    for (const std::size_t i : core::updated_args(op.kind)) overwritten.insert(op.args[i].index);
    const std::vector<bool> after = may_run_after(graph, update);
    for (core::NodeId v = 0; v < graph.node_count(); ++v) {
      if (v == update || graph.op(v) == nullptr || !after[static_cast<std::size_t>(v)]) continue;
      for (const core::Operand& arg : graph.op(v)->args) {
        if (arg.kind == core::Operand::Kind::resident && overwritten.contains(arg.index))
          text += fmt::format("{} can run after {}\n", graph.name(v), graph.name(update));
      }
    }
  }
  return text;
}

}  // namespace cairn::tests
