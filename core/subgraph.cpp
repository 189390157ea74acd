#include "cairn/core/subgraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "cairn/core/error.h"

namespace cairn::core {
namespace {

/// The node as it stands in the subgraph. `ops`: whether it keeps its op, whose arguments are all inside then.
Node node_inside(const InducedSubgraph& part, const Graph& whole, NodeId v, bool ops) {
  const auto own_id = [&](NodeId u) { return u == kNoNode ? kNoNode : part.own_id[u]; };
  Node node = node_of(whole, v);
  std::int64_t takeable = 0;  // bytes of inputs inside whose storage v may take over
  for (NodeId& input : node.inputs) {
    const bool only_reader = whole.readers(input).size() == 1;
    if (only_reader && !whole.keep(input) && own_id(input) != kNoNode) takeable += whole.size(input);
    input = own_id(input);
  }
  std::erase(node.inputs, kNoNode);
  node.inplace = own_id(node.inplace);
  node.forward = own_id(node.forward);
  node.scratch = std::max(node.scratch, -std::min(node.size, takeable));
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
      throw InputError(fmt::format("the subgraph names node {}, but there is none such", v));
    part.own_id[v] = 0;
  }
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (part.own_id[v] == kNoNode) continue;
    part.own_id[v] = static_cast<NodeId>(part.whole_id.size());
    part.whole_id.push_back(v);
  }
  const auto inside = [&](NodeId v) { return part.own_id[v] != kNoNode; };
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    const auto readers = graph.readers(v);
    if (inside(v) ? !std::all_of(readers.begin(), readers.end(), inside)
                  : std::any_of(readers.begin(), readers.end(), inside)) {
      (inside(v) ? part.leaving : part.entering).push_back(v);
    }
  }

  GraphBuilder builder(std::move(options.name));
  std::int64_t listed = 0;
  for (const Resident& resident : graph.residents()) {
    listed += resident.bytes();
    builder.add_resident(resident);
  }
  builder.add_resident_bytes(graph.resident_bytes() - listed);
  for (const NodeId v : part.whole_id) builder.add(node_inside(part, graph, v, part.entering.empty()));
  if (options.keep_leaving) {
    for (const NodeId v : part.leaving) builder.node(part.own_id[v]).keep = true;
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
