#include "cairn/core/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/subgraph.h"

namespace cairn::core {

/// The data shared by graphs that differ only in numbers.
struct Graph::Structure {
  std::string name;
  // Per node:
  std::vector<std::string> names;
  std::vector<std::uint8_t> backward, pinned;
  std::vector<NodeId> forward;
  std::vector<std::optional<Op>> ops;
  std::vector<std::int32_t> value_begin{0}, input_begin{0};
  std::vector<ValueId> inputs;
  // Per value:
  std::vector<std::string> output_names;
  std::vector<std::uint8_t> keep;
  std::vector<ValueId> inplace;
  std::vector<NodeId> producer;
  std::vector<std::int32_t> reader_begin{0};
  std::vector<NodeId> readers;
  // Neighbours of each node, unless they are the inputs and readers of its one output.
  std::vector<std::int32_t> predecessor_begin, successor_begin;
  std::vector<NodeId> predecessors, successors;
  std::vector<NodeId> order;
  bool order_given = false;
  bool any_pinned = false;
  std::vector<Resident> residents;
  std::int64_t resident_bytes = 0;

  bool single_output() const { return producer.size() == value_begin.size() - 1; }
};

struct Graph::Data {
  std::shared_ptr<const Structure> structure;
  CostUnit cost_unit;
  std::vector<std::int64_t> cost, scratch;
  std::vector<std::int64_t> size;       ///< size of each value
  std::vector<std::int64_t> node_size;  ///< size of each node; empty if every node has one output
  bool executable = true;               ///< ops and residents, if there are any, fit to the sizes

  /// Recomputes the sizes of nodes after a change of sizes.
  void add_up_sizes() {
    if (structure->single_output()) return;
    node_size.assign(cost.size(), 0);
    for (std::size_t x = 0; x < size.size(); ++x) node_size[structure->producer[x]] += size[x];
  }

  GraphView view() const {
    const Structure& s = *structure;
    const bool single = s.single_output();
    return {.node_count = static_cast<NodeId>(cost.size()),
            .value_count = static_cast<ValueId>(size.size()),
            .single_output = single,
            .cost = cost.data(),
            .scratch = scratch.data(),
            .node_size = single ? size.data() : node_size.data(),
            .pinned = s.pinned.data(),
            .value_begin = s.value_begin.data(),
            .input_begin = s.input_begin.data(),
            .inputs = s.inputs.data(),
            .predecessor_begin = single ? s.input_begin.data() : s.predecessor_begin.data(),
            .predecessors = single ? s.inputs.data() : s.predecessors.data(),
            .successor_begin = single ? s.reader_begin.data() : s.successor_begin.data(),
            .successors = single ? s.readers.data() : s.successors.data(),
            .size = size.data(),
            .keep = s.keep.data(),
            .producer = s.producer.data(),
            .reader_begin = s.reader_begin.data(),
            .readers = s.readers.data()};
  }
};

namespace {

// Sums stay below this, so that adding two of them, or rounding one up, cannot overflow.
constexpr std::int64_t kSumLimit = std::int64_t{1} << 62;

std::string quoted(const std::vector<Node>& nodes, NodeId v) { return fmt::format("'{}'", nodes[v].name); }

/// The usual name of an output: "node 'a'" if it is the only one of its node, else "output 1 of node 'a'".
std::string describe_output(const std::vector<Node>& nodes, OutputRef ref) {
  if (nodes[ref.node].outputs.size() == 1) return fmt::format("node {}", quoted(nodes, ref.node));
  return fmt::format("output {} of node {}", ref.output, quoted(nodes, ref.node));
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
}

void check_output_names(const std::vector<Node>& nodes) {
  for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
    if (nodes[v].outputs.size() == 1) continue;
    std::unordered_map<std::string_view, std::size_t> first;
    for (std::size_t k = 0; k < nodes[v].outputs.size(); ++k) {
      const std::string& name = nodes[v].outputs[k].name;
      if (name.empty()) continue;
      const auto [known, is_new] = first.emplace(name, k);
      if (is_new) continue;
      throw InputError(fmt::format("outputs {} and {} of node {} have the same name '{}'; give each its own",
                                   known->second, k, quoted(nodes, v), name));
    }
  }
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
      throw InputError(fmt::format("node {} names node {} as its forward node, but there is none such",
                                   quoted(nodes, v), nodes[v].forward));
    }
  }
}

/// Checks sizes, costs and their sums; `name_of(v)` is for messages.
template <class NameOf>
void check_numbers(const GraphView& graph, const NameOf& name_of) {
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

/// The least legal scratch of a node.
std::int64_t least_scratch(const GraphView& graph, NodeId v) {
  std::int64_t takeable = 0;
  for (std::int32_t e = graph.input_begin[v]; e < graph.input_begin[v + 1]; ++e) {
    const ValueId x = graph.inputs[e];
    if (graph.reader_begin[x + 1] - graph.reader_begin[x] == 1 && graph.keep[x] == 0) takeable += graph.size[x];
  }
  return -std::min(graph.node_size[v], takeable);
}

template <class NameOf>
void check_scratch(const GraphView& graph, const NameOf& name_of) {
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

/// Returns the nodes of one cycle, in the direction of the edges. Some node misses inputs, and every node that does has
/// such an input.
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

void check_order(const std::vector<Node>& nodes, const std::vector<NodeId>& order) {
  const auto n = static_cast<NodeId>(nodes.size());
  if (static_cast<NodeId>(order.size()) != n) {
    throw InputError(fmt::format("the order has {} entries, but there are {} nodes", order.size(), n));
  }
  std::vector<std::uint8_t> done(n, 0);
  for (const NodeId v : order) {
    if (v < 0 || v >= n) throw InputError(fmt::format("the order names node {}, but there is none such", v));
    if (done[v]) throw InputError(fmt::format("the order names node {} twice", quoted(nodes, v)));
    for (const auto& [u, output] : nodes[v].inputs) {
      if (!done[u]) {
        throw InputError(fmt::format("the order is not topological: node {} stands before its input {}",
                                     quoted(nodes, v), quoted(nodes, u)));
      }
    }
    done[v] = 1;
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

void check_inplace(const std::vector<Node>& nodes) {
  for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
    const Node& node = nodes[v];
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(node.outputs.size()); ++k) {
      const OutputRef taken = node.outputs[k].inplace;
      if (taken == OutputRef()) continue;
      if (std::find(node.inputs.begin(), node.inputs.end(), taken) == node.inputs.end()) {
        throw InputError(fmt::format("{} is in place of node {}, which is not one of its inputs",
                                     describe_output(nodes, {v, k}), taken.node));
      }
      for (std::int32_t other = 0; other < k; ++other) {
        if (node.outputs[other].inplace != taken) continue;
        throw InputError(fmt::format("outputs {} and {} of node {} are both in place of {}", other, k, quoted(nodes, v),
                                     describe_output(nodes, taken)));
      }
    }
  }
}

class OpChecker {
 public:
  OpChecker(const std::vector<Node>& nodes, const std::vector<Resident>& residents)
      : nodes_(nodes), residents_(residents), writer_(residents.size(), kNoNode), reader_(residents.size(), kNoNode) {}

  void check_all() {
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
      if (writer_[r] != kNoNode && reader_[r] != kNoNode) {
        throw InputError(fmt::format("resident '{}' is written by node {}, so node {} must read that node instead",
                                     residents_[r].name, quoted(nodes_, writer_[r]), quoted(nodes_, reader_[r])));
      }
    }
  }

 private:
  void check(NodeId v, const Op& op) {
    const std::vector<Output>& outputs = nodes_[v].outputs;
    const std::int32_t count = output_count(op.kind);
    if (std::ssize(outputs) < count) {
      throw InputError(fmt::format("it makes {} outputs, but the node has {}", count, outputs.size()));
    }
    for (std::size_t k = count; k < outputs.size(); ++k) {
      if (outputs[k].size == 0) continue;  // a control edge, which only orders
      throw InputError(
          fmt::format("it makes {} output{}, so the size of output {} must be 0", count, count == 1 ? "" : "s", k));
    }
    std::vector<Shape> shapes;
    for (std::size_t i = 0; i < op.args.size(); ++i) shapes.push_back(arg_shape(v, op, i));
    check_op(op, shapes);
    check_types(op);
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
    if (writer_[op.writes] != kNoNode) {
      throw InputError(
          fmt::format("it writes resident '{}', as does node {}", target.name, quoted(nodes_, writer_[op.writes])));
    }
    writer_[op.writes] = v;
  }

  /// Checks that every tensor of a checked op is stored as its place requires.
  void check_types(const Op& op) const {
    // If the first output is f32 in any graph, the storage is taken from the first argument.
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

/// Reverses the lists that `begin` and `items` describe: for each of `count` items, the lists that contain it,
/// ascending.
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

std::uint64_t mix(std::uint64_t h, std::uint64_t word) {
  h ^= word + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  h ^= h >> 30;
  h *= 0xbf58476d1ce4e5b9ULL;
  h ^= h >> 27;
  h *= 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

}  // namespace

void set_sizes(Node& node) {
  const std::int32_t count = output_count(node.op->kind);
  if (count == 1 && node.outputs.empty()) {
    node.size = output_bytes(*node.op, 0);
    return;
  }
  if (std::ssize(node.outputs) < count) node.outputs.resize(count);
  for (std::int32_t k = 0; k < count; ++k) node.outputs[k].size = output_bytes(*node.op, k);
}

Node node_of(const Graph& graph, NodeId v) {
  Node node;
  node.name = graph.name(v);
  node.cost = graph.cost(v);
  node.scratch = graph.scratch(v);
  node.backward = graph.backward(v);
  node.pinned = graph.pinned(v);
  node.forward = graph.forward(v);
  for (const ValueId x : graph.inputs(v)) node.inputs.push_back(graph.output_ref(x));
  if (graph.op(v) != nullptr) node.op = *graph.op(v);
  for (const ValueId x : graph.outputs(v)) {
    node.outputs.push_back(
        {graph.value_size(x), graph.value_kept(x), graph.output_ref(graph.inplace(x)), graph.output_name(x)});
  }
  if (node.outputs.size() > 1 || !node.outputs.front().name.empty()) return node;
  node.size = node.outputs.front().size;
  node.keep = node.outputs.front().keep;
  node.inplace = node.outputs.front().inplace;
  node.outputs.clear();
  return node;
}

Graph::Graph() : Graph(Data{std::make_shared<const Structure>(), {}, {}, {}, {}, {}}) {}
Graph::Graph(Data data) : data_(std::make_shared<const Data>(std::move(data))), view_(data_->view()) {}

const std::string& Graph::name() const { return data_->structure->name; }
const CostUnit& Graph::cost_unit() const { return data_->cost_unit; }
const std::string& Graph::name(NodeId v) const { return data_->structure->names[v]; }
bool Graph::backward(NodeId v) const { return data_->structure->backward[v] != 0; }
NodeId Graph::forward(NodeId v) const { return data_->structure->forward[v]; }
ValueId Graph::inplace(ValueId x) const { return data_->structure->inplace[x]; }
const std::string& Graph::output_name(ValueId x) const { return data_->structure->output_names[x]; }
std::string Graph::value_name(ValueId x) const {
  const auto [v, output] = output_ref(x);
  if (output_count(v) == 1) return name(v);
  return output_name(x).empty() ? fmt::format("{}[{}]", name(v), output)
                                : fmt::format("{}[{}]", name(v), output_name(x));
}
const Op* Graph::op(NodeId v) const {
  const std::optional<Op>& op = data_->structure->ops[v];
  return op && data_->executable ? &*op : nullptr;
}
std::span<const Resident> Graph::residents() const {
  return data_->executable ? std::span<const Resident>(data_->structure->residents) : std::span<const Resident>();
}
std::int64_t Graph::resident_bytes() const { return data_->structure->resident_bytes; }
std::span<const NodeId> Graph::input_order() const { return data_->structure->order; }
bool Graph::has_pinned() const { return data_->structure->any_pinned; }
bool Graph::order_was_given() const { return data_->structure->order_given; }

template <class Change>
Graph Graph::with_numbers(const Change& change) const {
  Data data = *data_;
  change(data);
  Graph graph(std::move(data));
  const auto name_of = [&](NodeId v) -> const std::string& { return name(v); };
  check_numbers(graph.view(), name_of);
  check_scratch(graph.view(), name_of);
  return graph;
}

Graph Graph::with_scratch(std::vector<std::int64_t> scratch) const {
  return with_numbers([&](Data& data) { data.scratch = std::move(scratch); });
}

Graph Graph::with_costs(std::vector<std::int64_t> cost, std::optional<CostUnit> unit) const {
  if (unit) check_cost_unit(*unit);
  return with_numbers([&](Data& data) {
    data.cost = std::move(cost);
    if (unit) data.cost_unit = std::move(*unit);
  });
}

Graph align_sizes(const Graph& graph, std::int64_t alignment) {
  if (alignment < 1 || alignment > (std::int64_t{1} << 30)) {
    throw InputError(fmt::format("alignment {} is not between 1 and 2^30 bytes", alignment));
  }
  return graph.with_numbers([&](Graph::Data& data) {
    data.executable = false;
    for (std::int64_t& size : data.size) size = align_up(size, alignment);
    data.add_up_sizes();
    const GraphView view = data.view();
    // Each in-place output of a node with several is rounded separately, as in a plan.
    const auto taken_over = [&](NodeId v) {
      std::int64_t before = 0, aligned = 0;
      for (const ValueId x : graph.outputs(v)) {
        const ValueId taken = graph.inplace(x);
        if (taken == kNoValue || graph.readers(taken).size() != 1 || graph.value_kept(taken)) continue;
        before += std::min(graph.value_size(x), graph.value_size(taken));
        aligned += std::min(data.size[x], data.size[taken]);
      }
      const std::int64_t saved = -graph.scratch(v), more = saved - before;
      const auto align_down = [&](std::int64_t bytes) { return bytes / alignment * alignment; };
      return more >= 0 ? aligned + align_down(more) : align_down(saved);
    };
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      if (graph.scratch(v) < 0 && graph.output_count(v) > 1) {
        data.scratch[v] = std::max(-taken_over(v), least_scratch(view, v));
        continue;
      }
      // If storage is taken over, the bytes that the outputs add to it are rounded, so that the result stays legal.
      data.scratch[v] = graph.scratch(v) >= 0
                            ? align_up(graph.scratch(v), alignment)
                            : align_up(graph.size(v) + graph.scratch(v), alignment) - view.node_size[v];
    }
  });
}

std::string Graph::fingerprint() const {
  std::uint64_t h = mix(0, static_cast<std::uint64_t>(node_count()));
  const auto mix_value = [&](ValueId x) {
    h = mix(h, static_cast<std::uint64_t>(inplace(x)) * 2 + (value_kept(x) ? 1 : 0));
  };
  for (NodeId v = 0; v < node_count(); ++v) {
    const ValueId first = value(v);
    h = mix(h, static_cast<std::uint64_t>(value_size(first)));
    h = mix(h, static_cast<std::uint64_t>(scratch(v)));
    mix_value(first);
    std::vector<ValueId> sorted(inputs(v).begin(), inputs(v).end());
    std::sort(sorted.begin(), sorted.end());
    for (const ValueId x : sorted) h = mix(h, static_cast<std::uint64_t>(x));
    h = mix(h, ~std::uint64_t{0});
    // Properties that version 1 of the format lacks change the hash only if they are present.
    if (pinned(v)) h = mix(h, ~std::uint64_t{1});
    for (ValueId x = first + 1; x < first + output_count(v); ++x) {
      h = mix(mix(h, ~std::uint64_t{2}), static_cast<std::uint64_t>(value_size(x)));
      mix_value(x);
    }
  }
  return fmt::format("{:016x}", h);
}

GraphBuilder::GraphBuilder(const Graph& graph) : name_(graph.name()), cost_unit_(graph.cost_unit()) {
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
  // A sum that overflows is out of range too; build() reports it.
  if (__builtin_add_overflow(extra_resident_bytes_, bytes, &extra_resident_bytes_)) extra_resident_bytes_ = -1;
}
void GraphBuilder::set_name(std::string name) { name_ = std::move(name); }
void GraphBuilder::set_cost_unit(CostUnit unit) {
  check_cost_unit(unit);
  cost_unit_ = std::move(unit);
}
void GraphBuilder::set_order(std::vector<NodeId> order) { order_ = std::move(order); }

namespace {

/// Kahn's algorithm, the smallest ready node first. Throws on a cycle.
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
  if (order.size() != nodes.size()) {
    throw InputError(fmt::format("the graph has a cycle: {}", list_cycle(nodes, find_cycle(nodes, missing))));
  }
  return order;
}

// Parts of GraphBuilder::build. They take Graph's private types as `auto`.

void name_all(std::vector<Node>& nodes) {
  for (std::size_t v = 0; v < nodes.size(); ++v) {
    Node& node = nodes[v];
    if (node.name.empty()) node.name = fmt::format("#{}", v);
    if (node.outputs.empty()) node.outputs.push_back({node.size, node.keep, node.inplace, ""});
  }
  check_names(nodes);
  check_output_names(nodes);
}

/// Numbers the values of all nodes, and copies the numeric properties of nodes and values.
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
      structure.producer.push_back(static_cast<NodeId>(v));
    }
    structure.value_begin.push_back(static_cast<ValueId>(values));
  }
  structure.inputs.reserve(static_cast<std::size_t>(edges));
}

/// Sets inputs without repeats, predecessors, and the reverse of both.
void link(std::vector<Node>& nodes, auto& structure) {
  const bool single = structure.single_output();
  const std::size_t values = structure.producer.size();
  std::vector<NodeId> last_reader(values, kNoNode);  // last reader of each value
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
  // Kahn's algorithm also finds cycles, so it runs even if a given order makes it superfluous.
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

/// Returns the bytes of the resident tensors, plus `bytes`.
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

Graph GraphBuilder::build() {
  std::vector<Node> nodes = std::exchange(nodes_, {});
  name_all(nodes);
  check_inputs_exist(nodes);
  const auto structure = std::make_shared<Graph::Structure>();
  Graph::Data data{structure, std::move(cost_unit_), {}, {}, {}, {}};
  number_values(nodes, data, *structure);
  const auto name_of = [&](NodeId v) -> const std::string& { return nodes[v].name; };
  check_numbers(data.view(), name_of);
  data.add_up_sizes();
  link(nodes, *structure);
  order_nodes(nodes, std::exchange(order_, std::nullopt), data.view(), *structure);
  check_inplace(nodes);
  check_scratch(data.view(), name_of);
  OpChecker(nodes, residents_).check_all();
  structure->resident_bytes = resident_bytes_of(residents_, std::exchange(extra_resident_bytes_, 0));
  structure->residents = std::exchange(residents_, {});
  structure->name = std::exchange(name_, {});
  take_rest(nodes, *structure);
  return Graph(std::move(data));
}

Graph forward_part(const Graph& graph) {
  std::vector<NodeId> forward;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.backward(v)) continue;
    for (const NodeId u : graph.predecessors(v)) {
      if (!graph.backward(u)) continue;
      throw InputError(
          fmt::format("node '{}' is not marked backward, but reads node '{}', which is", graph.name(v), graph.name(u)));
    }
    forward.push_back(v);
  }
  return induced_subgraph(graph, forward, {.name = graph.name().empty() ? "" : graph.name() + "_forward"}).graph;
}

}  // namespace cairn::core
