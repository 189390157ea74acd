#include "cairn/core/internal/graph_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "cairn/core/error.h"
#include "cairn/core/op.h"

namespace cairn::core {
namespace {

std::string quoted(const std::vector<Node>& nodes, NodeId v) { return fmt::format("'{}'", nodes[v].name); }

/// Returns how messages name an output: "node 'a'" if it is the node's only output, else "output 1 of node 'a'".
std::string describe_output(const std::vector<Node>& nodes, OutputRef ref) {
  if (nodes[ref.node].outputs.size() == 1) return fmt::format("node {}", quoted(nodes, ref.node));
  return fmt::format("output {} of node {}", ref.output, quoted(nodes, ref.node));
}

void check_output_names(const Node& node) {
  if (node.outputs.size() == 1) return;
  std::unordered_map<std::string_view, std::size_t> first;
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    const std::string& name = node.outputs[k].name;
    if (name.empty()) continue;
    const auto [known, is_new] = first.emplace(name, k);
    if (is_new) continue;
    throw InputError(fmt::format("outputs {} and {} of node '{}' have the same name '{}'; give each its own",
                                 known->second, k, node.name, name));
  }
}

/// Returns the nodes of one cycle, in the direction of the edges. `missing` holds, for each node, the number of its
/// predecessors that Kahn's algorithm could not run. Every node whose number is above 0 must have an input whose number
/// is above 0 too.
std::vector<NodeId> find_cycle(const std::vector<Node>& nodes, const std::vector<std::int32_t>& missing) {
  std::vector<std::uint8_t> seen(nodes.size(), 0);
  NodeId v = 0;
  while (missing[v] == 0) ++v;
  std::vector<NodeId> path;
  while (!seen[v]) {
    seen[v] = 1;
    path.push_back(v);
    v = std::find_if(nodes[v].inputs.begin(), nodes[v].inputs.end(), [&](OutputRef x) {
          return missing[x.node] > 0;
        })->node;
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), v));
  std::reverse(path.begin(), path.end());
  return path;
}

std::string list_cycle(const std::vector<Node>& nodes, const std::vector<NodeId>& cycle) {
  constexpr std::size_t kMost = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(cycle.size(), kMost); ++i) text += nodes[cycle[i]].name + " -> ";
  if (cycle.size() > kMost) text += fmt::format("({} more) -> ", cycle.size() - kMost);
  return text + nodes[cycle.front()].name;
}

class OpChecker {
 public:
  OpChecker(const std::vector<Node>& nodes, const std::vector<Resident>& residents)
      : nodes_(nodes), residents_(residents), writer_(residents.size(), kNoNode), reader_(residents.size(), kNoNode) {}

  void check_all() {
    for (const Resident& resident : residents_) {
      if (!std::isfinite(resident.scale))
        throw InputError(
            fmt::format("resident '{}' has the scale {}, which must be finite", resident.name, resident.scale));
      check_master(resident);
    }
    for (NodeId v = 0; v < static_cast<NodeId>(nodes_.size()); ++v) {
      if (!nodes_[v].op) continue;
      try {
        check(v, *nodes_[v].op);
      } catch (const InputError& error) {
        throw InputError(
            fmt::format("node {}: op {}: {}", quoted(nodes_, v), to_string(nodes_[v].op->kind), error.what()));
      }
    }
    for (std::size_t r = 0; r < residents_.size(); ++r) {
      // A weight may have both readers and a node that updates it: the readers run before that node, so they read the
      // weight's old value.
      const bool updated = writer_[r] != kNoNode && is_update(nodes_[writer_[r]].op->kind);
      if (writer_[r] != kNoNode && reader_[r] != kNoNode && !updated) {
        throw InputError(fmt::format("resident '{}' is written by node {}, so node {} must read that node instead",
                                     residents_[r].name, quoted(nodes_, writer_[r]), quoted(nodes_, reader_[r])));
      }
    }
  }

 private:
  void check_master(const Resident& copy) const {
    if (copy.master_of < 0) return;
    const Resident& weight = resident(copy.master_of);
    if (copy.type == ElementType::f32 && weight.type == ElementType::bf16 && copy.shape == weight.shape) return;
    throw InputError(
        fmt::format("resident '{}' is the fp32 copy of '{}', so they must be an f32 and a bf16 tensor of one shape",
                    copy.name, weight.name));
  }

  void check(NodeId v, const Op& op) {
    const std::vector<Output>& outputs = nodes_[v].outputs;
    const std::int32_t count = output_count(op.kind);
    if (std::ssize(outputs) < count) {
      throw InputError(fmt::format("it makes {} outputs, but the node has {}", count, outputs.size()));
    }
    for (std::size_t k = count; k < outputs.size(); ++k) {
      if (outputs[k].size == 0) continue;  // a control edge, which carries no data
      throw InputError(
          fmt::format("it makes {} output{}, so the size of output {} must be 0", count, count == 1 ? "" : "s", k));
    }
    std::vector<Shape> shapes;
    for (std::size_t i = 0; i < op.args.size(); ++i) shapes.push_back(arg_shape(v, op, i));
    check_op(op, shapes);
    check_types(op);
    if (is_update(op.kind)) check_update(v, op);
    const std::int64_t bytes = output_bytes(op, 0);
    if (op.writes < 0) {
      if (outputs.front().size != bytes) {
        throw InputError(fmt::format("its shape needs {} bytes, but its size is {}", bytes, outputs.front().size));
      }
      for (std::int32_t k = 1; k < count; ++k) {
        if (outputs[k].size == output_bytes(op, k)) continue;
        throw InputError(
            fmt::format("its output {} needs {} bytes, but has size {}", k, output_bytes(op, k), outputs[k].size));
      }
      return;
    }
    if (count > 1) throw InputError("it writes a resident, which only ops of one output can");
    const Resident& target = resident(op.writes);
    if (target.bytes() != bytes || target.type != op.type) {
      throw InputError(fmt::format("it writes resident '{}', which is no {} tensor of {} bytes", target.name,
                                   to_string(op.type), bytes));
    }
    if (outputs.front().size != 0) throw InputError("it writes a resident, so its size must be 0");
    add_writer(v, op.writes);
    if (is_update(op.kind) && op.type != ElementType::f32 && resident(op.args[1].index).master_of != op.writes)
      throw InputError(
          fmt::format("it updates resident {}, which must be the fp32 copy (master_of) of resident {}, which "
                      "it writes",
                      op.args[1].index, op.writes));
  }

  void add_writer(NodeId v, std::int32_t index) {
    NodeId& writer = writer_[index];
    if (writer != kNoNode && writer != v) {
      throw InputError(
          fmt::format("it writes resident '{}', as does node {}", residents_[index].name, quoted(nodes_, writer)));
    }
    writer = v;
  }

  void check_update(NodeId v, const Op& op) {
    if (!nodes_[v].pinned) throw InputError("it updates a weight, so the node must be pinned");
    if (op.writes < 0) throw InputError("it updates a weight, so it must write a resident");
    const std::int32_t weight = op.args[1].index;
    if (op.type == ElementType::f32 && op.writes != weight)
      throw InputError(fmt::format("it must write the weight that it updates, which is resident {}", weight));
    for (const std::size_t i : updated_args(op.kind)) {
      for (std::size_t j = 0; j < op.args.size(); ++j) {
        if (j != i && op.args[j] == op.args[i])
          throw InputError(fmt::format("arguments {} and {} are the same tensor, which the op overwrites", i, j));
      }
      require_trained(resident(op.args[i].index));
      add_writer(v, op.args[i].index);
    }
    require_trained(resident(op.writes));
  }

  /// Checks that the role of a tensor that an update changes says so, because checkpoints and tests go by the roles.
  static void require_trained(const Resident& updated) {
    if (updated.role == Resident::Role::weight || updated.role == Resident::Role::optimizer) return;
    throw InputError(fmt::format("it updates resident '{}', whose role must be weight or optimizer", updated.name));
  }

  /// Checks the element types of an op's arguments and of its first output. check_op() must have accepted the op.
  void check_types(const Op& op) const {
    // If the first output is f32 in every graph, it does not show the graph's storage type. The type is then taken from
    // the first argument.
    const bool shows = output_type(op.kind, ElementType::bf16) == ElementType::bf16;
    const ElementType storage = shows ? op.type : type_of(op.args[0]);
    if (storage == ElementType::i32 || op.type != output_type(op.kind, storage)) {
      throw InputError(fmt::format("its output cannot be of type {}", to_string(op.type)));
    }
    for (std::size_t i = 0; i < op.args.size(); ++i) {
      const ElementType wanted = arg_type(op.kind, i, storage);
      if (type_of(op.args[i]) != wanted) {
        throw InputError(fmt::format("argument {} must be of type {}", i, to_string(wanted)));
      }
    }
  }

  ElementType type_of(const Operand& arg) const {
    return arg.kind == Operand::Kind::resident ? resident(arg.index).type
                                               : output_type(*nodes_[arg.index].op, arg.output);
  }

  Shape arg_shape(NodeId v, const Op& op, std::size_t i) {
    const Operand& arg = op.args[i];
    const bool integers = arg_type(op.kind, i, ElementType::f32) == ElementType::i32;
    if (arg.kind == Operand::Kind::resident) {
      const Resident& tensor = resident(arg.index);
      if ((tensor.type == ElementType::i32) != integers) {
        throw InputError(fmt::format("argument {} must be of type {}", i, integers ? "i32" : "f32"));
      }
      reader_[arg.index] = v;
      return tensor.shape;
    }
    if (integers && op.kind != OpKind::maxpool_with_indices_grad) {
      throw InputError(fmt::format("argument {} must be a resident of type i32", i));
    }
    const auto& inputs = nodes_[v].inputs;
    if (std::find(inputs.begin(), inputs.end(), OutputRef(arg.index, arg.output)) == inputs.end()) {
      throw InputError(fmt::format("argument {} is {}node {}, which is not one of its inputs", i,
                                   arg.output == 0 ? "" : fmt::format("output {} of ", arg.output), arg.index));
    }
    if (!nodes_[arg.index].op) {
      throw InputError(
          fmt::format("argument {} is node {}, which has no op and so no shape", i, quoted(nodes_, arg.index)));
    }
    const Op& producer = *nodes_[arg.index].op;
    if (arg.output >= output_count(producer.kind)) {
      throw InputError(fmt::format("argument {} is output {} of node {}, which its op {} does not make", i, arg.output,
                                   quoted(nodes_, arg.index), to_string(producer.kind)));
    }
    return output_shape(producer, arg.output);
  }

  const Resident& resident(std::int32_t index) const {
    if (index < 0 || index >= static_cast<std::int32_t>(residents_.size())) {
      throw InputError(fmt::format("there is no resident {}", index));
    }
    return residents_[index];
  }

  const std::vector<Node>& nodes_;
  const std::vector<Resident>& residents_;
  std::vector<NodeId> writer_, reader_;
};

}  // namespace

void check_numbers(const GraphView& graph, const NameOfNode& name_of) {
  std::int64_t bytes = 0, cost = 0;
  for (NodeId v = 0; v < graph.node_count; ++v) {
    const auto add_bytes = [&](std::int64_t more) {
      if (more > kSumLimit - bytes) {
        throw InputError(
            fmt::format("the sizes up to node '{}' add up to more than 2^62 bytes; are they in bytes?", name_of(v)));
      }
      bytes += more;
    };
    for (ValueId x = graph.value_begin[v]; x < graph.value_begin[v + 1]; ++x) {
      if (graph.size[x] < 0)
        throw InputError(fmt::format("node '{}' has the negative size {}", name_of(v), graph.size[x]));
      add_bytes(graph.size[x]);
    }
    if (graph.cost[v] < 0)
      throw InputError(fmt::format("node '{}' has the negative cost {}", name_of(v), graph.cost[v]));
    add_bytes(std::max<std::int64_t>(graph.scratch[v], 0));
    if (graph.cost[v] > kSumLimit - cost) {
      throw InputError(
          fmt::format("the costs up to node '{}' add up to more than 2^62; use a larger unit", name_of(v)));
    }
    cost += graph.cost[v];
  }
}

std::int64_t least_scratch(const GraphView& graph, NodeId v) {
  std::int64_t takeable = 0;
  for (std::int32_t e = graph.input_begin[v]; e < graph.input_begin[v + 1]; ++e) {
    const ValueId x = graph.inputs[e];
    if (graph.reader_begin[x + 1] - graph.reader_begin[x] == 1 && graph.keep[x] == 0) takeable += graph.size[x];
  }
  return -std::min(graph.node_size[v], takeable);
}

void check_scratch(const GraphView& graph, const NameOfNode& name_of) {
  for (NodeId v = 0; v < graph.node_count; ++v) {
    if (graph.scratch[v] >= 0) continue;
    const std::int64_t least = least_scratch(graph, v);
    if (graph.scratch[v] < least) {
      throw InputError(fmt::format(
          "node '{}' has scratch {}, but may take over at most {} bytes of its inputs; the least legal scratch is {}",
          name_of(v), graph.scratch[v], -least, least));
    }
  }
}

void check_names(const std::vector<Node>& nodes) {
  std::unordered_map<std::string_view, NodeId> first;
  first.reserve(nodes.size());
  for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
    const auto [known, is_new] = first.emplace(nodes[v].name, v);
    if (!is_new) {
      throw InputError(fmt::format("nodes {} and {} have the same name '{}'; give each node its own", known->second, v,
                                   nodes[v].name));
    }
  }
  for (const Node& node : nodes) check_output_names(node);
}

void check_inputs_exist(const std::vector<Node>& nodes) {
  const auto n = static_cast<NodeId>(nodes.size());
  for (NodeId v = 0; v < n; ++v) {
    for (const auto& [u, output] : nodes[v].inputs) {
      if (u < 0 || u >= n) {
        throw InputError(
            fmt::format("node {} reads node {}, but there are only nodes 0 to {}", quoted(nodes, v), u, n - 1));
      }
      if (u == v) throw InputError(fmt::format("node {} reads itself; remove this self-loop", quoted(nodes, v)));
      const auto count = static_cast<std::int64_t>(nodes[u].outputs.size());
      if (output < 0 || output >= count) {
        throw InputError(fmt::format("node {} reads output {} of node {}, which has only {}", quoted(nodes, v), output,
                                     quoted(nodes, u),
                                     count == 1 ? "output 0" : fmt::format("outputs 0 to {}", count - 1)));
      }
    }
    if (nodes[v].forward != kNoNode && (nodes[v].forward < 0 || nodes[v].forward >= n)) {
      throw InputError(fmt::format("node {} names node {} as its forward node, but there is no such node",
                                   quoted(nodes, v), nodes[v].forward));
    }
  }
}

void refuse_cycle(const std::vector<Node>& nodes, const std::vector<std::int32_t>& missing) {
  throw InputError(fmt::format("the graph has a cycle: {}", list_cycle(nodes, find_cycle(nodes, missing))));
}

void check_order(const std::vector<Node>& nodes, const std::vector<NodeId>& order) {
  const auto n = static_cast<NodeId>(nodes.size());
  if (static_cast<NodeId>(order.size()) != n) {
    throw InputError(fmt::format("the order has {} entries, but there are {} nodes", order.size(), n));
  }
  std::vector<std::uint8_t> done(n, 0);
  for (const NodeId v : order) {
    if (v < 0 || v >= n) throw InputError(fmt::format("the order names node {}, but there is no such node", v));
    if (done[v]) throw InputError(fmt::format("the order names node {} twice", quoted(nodes, v)));
    for (const auto& [u, output] : nodes[v].inputs) {
      if (!done[u]) {
        throw InputError(fmt::format("the order is not topological: node {} comes before its input {}",
                                     quoted(nodes, v), quoted(nodes, u)));
      }
    }
    done[v] = 1;
  }
}

void check_inplace(const std::vector<Node>& nodes) {
  for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
    const Node& node = nodes[v];
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(node.outputs.size()); ++k) {
      const OutputRef taken = node.outputs[k].inplace;
      if (taken == OutputRef()) continue;
      if (std::find(node.inputs.begin(), node.inputs.end(), taken) == node.inputs.end()) {
        throw InputError(fmt::format("{} takes over the storage of node {}, which is not one of its inputs",
                                     describe_output(nodes, {v, k}), taken.node));
      }
      for (std::int32_t other = 0; other < k; ++other) {
        if (node.outputs[other].inplace != taken) continue;
        throw InputError(fmt::format("outputs {} and {} of node {} both take over the storage of {}", other, k,
                                     quoted(nodes, v), describe_output(nodes, taken)));
      }
    }
  }
}

void check_ops(const std::vector<Node>& nodes, const std::vector<Resident>& residents) {
  OpChecker(nodes, residents).check_all();
}

}  // namespace cairn::core
