#include "cairn/core/support/subgraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "cairn/core/error.h"

namespace cairn::core {
namespace {

/// Returns node v as a node of the subgraph. `ops` says whether the node keeps its op. If it does, all arguments must
/// be inside the subgraph.
Node node_inside(const InducedSubgraph& part, const Graph& whole, NodeId v, bool ops) {
  const auto own_id = [&](NodeId u) { return u == kNoNode ? kNoNode : part.own_id[u]; };
  const auto inside = [&](OutputRef ref) {
    return own_id(ref.node) == kNoNode ? OutputRef() : OutputRef(own_id(ref.node), ref.output);
  };
  std::int64_t takeable = 0;  // bytes of inputs inside the subgraph whose storage v may take over
  for (const ValueId x : whole.inputs(v)) {
    const bool only_reader = whole.readers(x).size() == 1;
    if (only_reader && !whole.value_kept(x) && own_id(whole.producer(x)) != kNoNode) takeable += whole.value_size(x);
  }
  Node node = node_of(whole, v);
  for (OutputRef& input : node.inputs) input = inside(input);
  std::erase(node.inputs, OutputRef());
  node.inplace = inside(node.inplace);
  for (Output& output : node.outputs) output.inplace = inside(output.inplace);
  node.forward = own_id(node.forward);
  node.scratch = std::max(node.scratch, -std::min(whole.size(v), takeable));
  if (!ops) node.op.reset();
  if (!node.op) return node;
  for (Operand& arg : node.op->args) {
    if (arg.kind == Operand::Kind::node) arg.index = own_id(arg.index);
  }
  return node;
}

}  // namespace

InducedSubgraph induced_subgraph(const Graph& graph, std::span<const NodeId> nodes, SubgraphOptions options) {
  InducedSubgraph part;
  part.own_id.assign(static_cast<std::size_t>(graph.node_count()), kNoNode);
  for (const NodeId v : nodes) {
    if (v < 0 || v >= graph.node_count())
      throw InputError(fmt::format("the subgraph names node {}, but there is no such node", v));
    part.own_id[v] = 0;
  }
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (part.own_id[v] == kNoNode) continue;
    part.own_id[v] = static_cast<NodeId>(part.whole_id.size());
    part.whole_id.push_back(v);
  }
  const auto inside = [&](NodeId v) { return part.own_id[v] != kNoNode; };
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    const auto readers = graph.readers(x);
    const bool made_inside = inside(graph.producer(x));
    if (made_inside ? !std::all_of(readers.begin(), readers.end(), inside)
                    : std::any_of(readers.begin(), readers.end(), inside)) {
      (made_inside ? part.leaving : part.entering).push_back(x);
    }
  }

  GraphBuilder builder(std::move(options.name));
  builder.set_cost_unit(graph.cost_unit());
  builder.set_host_memory(graph.host_memory());
  std::int64_t listed = 0;
  for (const Resident& resident : graph.residents()) {
    listed += resident.bytes();
    builder.add_resident(resident);
  }
  builder.add_resident_bytes(graph.resident_bytes() - listed);
  for (const NodeId v : part.whole_id) builder.add(node_inside(part, graph, v, part.entering.empty()));
  if (options.keep_leaving) {
    for (const ValueId x : part.leaving) {
      const auto [v, output] = graph.output_ref(x);
      Node& node = builder.node(part.own_id[v]);
      (node.outputs.empty() ? node.keep : node.outputs[output].keep) = true;
    }
  }
  std::vector<NodeId> order;
  order.reserve(part.whole_id.size());
  for (const NodeId v : graph.input_order()) {
    if (inside(v)) order.push_back(part.own_id[v]);
  }
  builder.set_order(std::move(order));
  part.graph = builder.build();
  return part;
}

}  // namespace cairn::core
