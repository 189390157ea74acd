#include <fmt/format.h>

#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/graph.h"
#include "cairn/core/internal/graph_checks.h"
#include "cairn/core/internal/graph_data.h"
#include "cairn/core/internal/update_order.h"

namespace cairn::core {
namespace {

/// Inverts lists of ids. List j of the input consists of items[begin[j]] to items[begin[j + 1] - 1]. The result is
/// `count` lists in the same form, in `reverse_begin` and `reverse`. List i of the result has, in ascending order,
/// every j such that list j of the input contains i.
void reverse_lists(std::size_t count, const std::vector<std::int32_t>& begin, const std::vector<std::int32_t>& items,
                   std::vector<std::int32_t>& reverse_begin, std::vector<std::int32_t>& reverse) {
  reverse_begin.assign(count + 1, 0);
  for (const std::int32_t item : items) ++reverse_begin[item + 1];
  std::partial_sum(reverse_begin.begin(), reverse_begin.end(), reverse_begin.begin());
  reverse.resize(items.size());
  std::vector<std::int32_t> fill(reverse_begin.begin(), reverse_begin.end() - 1);
  for (std::size_t list = 0; list + 1 < begin.size(); ++list) {
    for (std::int32_t e = begin[list]; e < begin[list + 1]; ++e)
      reverse[fill[items[e]]++] = static_cast<std::int32_t>(list);
  }
}

bool ids_are_topological(const std::vector<Node>& nodes) {
  for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
    for (const OutputRef x : nodes[v].inputs) {
      if (x.node > v) return false;
    }
  }
  return true;
}

/// Returns a topological order by Kahn's algorithm. Of the nodes whose predecessors have run, the one with the least id
/// runs next. Throws InputError on a cycle.
std::vector<NodeId> kahn(const std::vector<Node>& nodes, const GraphView& graph) {
  std::vector<std::int32_t> missing(nodes.size());
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
    missing[v] = graph.predecessor_begin[v + 1] - graph.predecessor_begin[v];
    if (missing[v] == 0) ready.push(v);
  }
  std::vector<NodeId> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    const NodeId v = ready.top();
    ready.pop();
    order.push_back(v);
    for (std::int32_t e = graph.successor_begin[v]; e < graph.successor_begin[v + 1]; ++e) {
      if (--missing[graph.successors[e]] == 0) ready.push(graph.successors[e]);
    }
  }
  if (order.size() != nodes.size()) refuse_cycle(nodes, missing);
  return order;
}

// The following functions are parts of GraphBuilder::build(). They cannot name Graph::Data and Graph::Structure, which
// are private, so parameters of these types are `auto`.

void name_all(std::vector<Node>& nodes) {
  for (std::size_t v = 0; v < nodes.size(); ++v) {
    Node& node = nodes[v];
    if (node.name.empty()) node.name = fmt::format("#{}", v);
    if (node.outputs.empty()) node.outputs.push_back({node.size, node.keep, node.inplace, ""});
  }
  check_names(nodes);
}

void number_values(const std::vector<Node>& nodes, auto& data, auto& structure) {
  std::int64_t values = 0, edges = 0;
  for (std::size_t v = 0; v < nodes.size(); ++v) {
    const Node& node = nodes[v];
    values += static_cast<std::int64_t>(node.outputs.size());
    edges += static_cast<std::int64_t>(node.inputs.size());
    if (values > std::numeric_limits<std::int32_t>::max() || edges > std::numeric_limits<std::int32_t>::max()) {
      throw InputError("the graph has more than 2^31 - 1 edges or outputs");
    }
    data.cost.push_back(node.cost);
    data.scratch.push_back(node.scratch);
    for (const Output& output : node.outputs) {
      data.size.push_back(output.size);
      structure.keep.push_back(output.keep);
      structure.stays.push_back(output.stays);
      structure.producer.push_back(static_cast<NodeId>(v));
    }
    structure.value_begin.push_back(static_cast<ValueId>(values));
  }
  structure.inputs.reserve(static_cast<std::size_t>(edges));
}

void link(std::vector<Node>& nodes, auto& structure) {
  const bool single = structure.single_output();
  const std::size_t values = structure.producer.size();
  std::vector<NodeId> last_reader(values, kNoNode);
  std::vector<NodeId> last_successor(single ? 0 : nodes.size(), kNoNode);
  if (!single) structure.predecessor_begin.push_back(0);
  for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
    std::erase_if(nodes[v].inputs, [&](OutputRef ref) {
      return std::exchange(last_reader[structure.value_begin[ref.node] + ref.output], v) == v;
    });
    for (const OutputRef ref : nodes[v].inputs) {
      structure.inputs.push_back(structure.value_begin[ref.node] + ref.output);
      if (!single && std::exchange(last_successor[ref.node], v) != v) structure.predecessors.push_back(ref.node);
    }
    structure.input_begin.push_back(static_cast<std::int32_t>(structure.inputs.size()));
    if (!single) structure.predecessor_begin.push_back(static_cast<std::int32_t>(structure.predecessors.size()));
  }
  reverse_lists(values, structure.input_begin, structure.inputs, structure.reader_begin, structure.readers);
  if (!single) {
    reverse_lists(nodes.size(), structure.predecessor_begin, structure.predecessors, structure.successor_begin,
                  structure.successors);
  }
}

void order_nodes(const std::vector<Node>& nodes, std::optional<std::vector<NodeId>> given, const auto& view,
                 auto& structure) {
  // If the ids are not topological, Kahn's algorithm runs even if an order is given, because it also finds cycles.
  const bool ids_topological = ids_are_topological(nodes);
  std::vector<NodeId> kahn_order;
  if (!ids_topological) kahn_order = kahn(nodes, view);
  if (given) {
    check_order(nodes, *given);
    structure.order = *std::move(given);
    structure.order_given = true;
  } else if (ids_topological) {
    structure.order.resize(nodes.size());
    std::iota(structure.order.begin(), structure.order.end(), 0);
  } else {
    structure.order = std::move(kahn_order);
  }
}

std::int64_t resident_bytes_of(const std::vector<Resident>& residents, std::int64_t bytes) {
  for (const Resident& resident : residents) {
    if (bytes < 0 || resident.bytes() > kSumLimit - bytes) {
      throw InputError("the resident bytes add up to less than 0 or more than 2^62");
    }
    bytes += resident.bytes();
  }
  if (bytes < 0 || bytes > kSumLimit)
    throw InputError(fmt::format("{} resident bytes are not between 0 and 2^62", bytes));
  return bytes;
}

void take_rest(std::vector<Node>& nodes, auto& structure) {
  for (Node& node : nodes) {
    structure.names.push_back(std::move(node.name));
    structure.backward.push_back(node.backward);
    structure.pinned.push_back(node.pinned);
    structure.any_pinned = structure.any_pinned || node.pinned;
    structure.forward.push_back(node.forward);
    for (Output& output : node.outputs) {
      const OutputRef taken = output.inplace;
      structure.inplace.push_back(taken.node == kNoNode ? kNoValue : structure.value_begin[taken.node] + taken.output);
      structure.output_names.push_back(std::move(output.name));
    }
    structure.ops.push_back(std::move(node.op));
  }
}

}  // namespace

GraphBuilder::GraphBuilder(const Graph& graph)
    : name_(graph.name()), cost_unit_(graph.cost_unit()), host_memory_(graph.host_memory()) {
  for (NodeId v = 0; v < graph.node_count(); ++v) nodes_.push_back(node_of(graph, v));
  std::int64_t listed = 0;
  for (const Resident& resident : graph.residents()) listed += resident.bytes();
  residents_.assign(graph.residents().begin(), graph.residents().end());
  extra_resident_bytes_ = graph.resident_bytes() - listed;
  if (graph.order_was_given()) set_order({graph.input_order().begin(), graph.input_order().end()});
}

GraphBuilder::GraphBuilder(std::string name) : name_(std::move(name)) {}

NodeId GraphBuilder::add(Node node) {
  if (nodes_.size() >= static_cast<std::size_t>(std::numeric_limits<NodeId>::max() - 1)) {
    throw InputError("the graph has more than 2^31 - 2 nodes");
  }
  nodes_.push_back(std::move(node));
  return static_cast<NodeId>(nodes_.size()) - 1;
}

void GraphBuilder::add_input(NodeId node, OutputRef input) { nodes_.at(node).inputs.push_back(input); }

void GraphBuilder::add_control_input(NodeId node, NodeId predecessor) {
  Node& before = nodes_.at(predecessor);
  if (before.outputs.empty() && before.size == 0) return add_input(node, predecessor);
  if (before.outputs.empty()) before.outputs.push_back({before.size, before.keep, before.inplace, ""});
  const auto orders_only = [](const Output& output) { return output.size == 0; };
  const auto found = std::find_if(before.outputs.begin(), before.outputs.end(), orders_only);
  add_input(node, {predecessor, static_cast<std::int32_t>(found - before.outputs.begin())});
  if (found == before.outputs.end()) before.outputs.emplace_back();
}

Node& GraphBuilder::node(NodeId v) { return nodes_.at(v); }
NodeId GraphBuilder::node_count() const { return static_cast<NodeId>(nodes_.size()); }

std::int32_t GraphBuilder::add_resident(Resident resident) {
  residents_.push_back(std::move(resident));
  return static_cast<std::int32_t>(residents_.size()) - 1;
}

const Resident& GraphBuilder::resident(std::int32_t index) const { return residents_.at(index); }
Resident& GraphBuilder::resident(std::int32_t index) { return residents_.at(index); }
void GraphBuilder::add_resident_bytes(std::int64_t bytes) {
  // A sum that overflows is stored as -1, which build() reports as out of range.
  if (__builtin_add_overflow(extra_resident_bytes_, bytes, &extra_resident_bytes_)) extra_resident_bytes_ = -1;
}
void GraphBuilder::set_name(std::string name) { name_ = std::move(name); }
void GraphBuilder::set_host_memory(std::optional<HostMemory> host) { host_memory_ = host; }

void GraphBuilder::set_cost_unit(CostUnit unit) {
  check_cost_unit(unit);
  cost_unit_ = std::move(unit);
}
void GraphBuilder::set_order(std::vector<NodeId> order) { order_ = std::move(order); }

Graph GraphBuilder::build() {
  GraphBuilder given = std::exchange(*this, GraphBuilder());  // leaves this builder empty even if a check fails
  std::vector<Node>& nodes = given.nodes_;
  name_all(nodes);
  check_inputs_exist(nodes);
  order_updates(given, given.residents_.size());
  const auto structure = std::make_shared<Graph::Structure>();
  Graph::Data data{structure, std::move(given.cost_unit_), {}, {}, {}, {}, given.host_memory_};
  number_values(nodes, data, *structure);
  const NameOfNode name_of = [&](NodeId v) -> const std::string& { return nodes[v].name; };
  check_numbers(data.view(), name_of);
  data.add_up_sizes();
  link(nodes, *structure);
  order_nodes(nodes, std::move(given.order_), data.view(), *structure);
  check_inplace(nodes);
  check_scratch(data.view(), name_of);
  check_ops(nodes, given.residents_);
  structure->resident_bytes = resident_bytes_of(given.residents_, given.extra_resident_bytes_);
  structure->residents = std::move(given.residents_);
  structure->name = std::move(given.name_);
  take_rest(nodes, *structure);
  return Graph(std::move(data));
}

}  // namespace cairn::core
