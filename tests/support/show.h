#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <span>
#include <string>

#include "cairn/core/dominance.h"
#include "cairn/core/graph.h"
#include "cairn/solvers/order/internal/papers/node_sum.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"

/// These functions return graphs, orders and profiles as text for messages.
namespace cairn::tests {

inline std::string show(std::span<const std::int64_t> values) { return fmt::format("({})", fmt::join(values, " ")); }
inline std::string show(std::span<const core::NodeId> nodes) { return fmt::format("[{}]", fmt::join(nodes, " ")); }
inline std::string show(std::span<const core::Segment> segments) {
  std::string text;
  for (const core::Segment& segment : segments) text += fmt::format("+{}-{} ", segment.rise, segment.drop);
  return text;
}

/// Returns a graph as text, with one line for each node.
inline std::string show(const core::Graph& graph) {
  std::string text = "\n";
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    text += fmt::format("  {}: {} size {} scratch {}{} inputs {}\n", v, graph.name(v), graph.size(v), graph.scratch(v),
                        graph.keep(v) ? " keep" : "", show(graph.inputs(v)));
  }
  return text;
}
inline std::string show(const solvers::NodeSumGraph& graph) {
  std::string text = "\n";
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    text += fmt::format("  {}: weight {} to {}\n", v, graph.weight(v), show(graph.successors(v)));
  }
  return text;
}
inline std::string show(const solvers::StepGraph& graph) {
  std::string text = "\n";
  for (solvers::StepId s = 0; s < graph.step_count(); ++s) {
    text += fmt::format("  {}: rise {} drop {} output {} to {}\n", s, graph[s].rise, graph[s].drop, graph[s].output,
                        show(graph.successors(s)));
  }
  return text;
}

}  // namespace cairn::tests
