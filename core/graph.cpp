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

/// What graphs share that differ in numbers alone.
struct Graph::Structure {
  std::string name;
  std::vector<std::string> names;
  std::vector<std::uint8_t> keep, backward;
  std::vector<NodeId> forward, inplace;
  std::vector<std::optional<Op>> ops;
  std::vector<std::int32_t> input_begin{0}, reader_begin{0};
  std::vector<NodeId> inputs, readers;
  std::vector<NodeId> order;
  bool order_given = false;
  std::vector<Resident> residents;
  std::int64_t resident_bytes = 0;
};

struct Graph::Data {
  std::shared_ptr<const Structure> structure;
  std::vector<std::int64_t> size, cost, scratch;
  bool executable = true;  ///< ops and residents, if there are any, fit to the sizes

  GraphView view() const {
    return {static_cast<NodeId>(size.size()),
            size.data(),
            cost.data(),
            scratch.data(),
            structure->keep.data(),
            structure->input_begin.data(),
            structure->inputs.data(),
            structure->reader_begin.data(),
            structure->readers.data()};
  }
};

namespace {

// Sums stay below this, so that adding two of them, or rounding one up, cannot overflow.
constexpr std::int64_t kSumLimit = std::int64_t{1} << 62;

std::string quoted(const std::vector<Node>& nodes, NodeId v) { return fmt::format("'{}'", nodes[v].name); }

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

void check_inputs_exist(const std::vector<Node>& nodes) {
  const auto n = static_cast<NodeId>(nodes.size());
  for (NodeId v = 0; v < n; ++v) {
    for (const NodeId u : nodes[v].inputs) {
      if (u < 0 || u >= n) {
        throw InputError(
            fmt::format("node {} reads node {}, but there are only nodes 0 to {}", quoted(nodes, v), u, n - 1));
      }
      if (u == v) throw InputError(fmt::format("node {} reads itself; remove this self-loop", quoted(nodes, v)));
    }
    if (nodes[v].forward != kNoNode && (nodes[v].forward < 0 || nodes[v].forward >= n)) {
      throw InputError(fmt::format("node {} names node {} as its forward node, but there is none such",
                                   quoted(nodes, v), nodes[v].forward));
    }
  }
}

/// `name_of(v)` is for messages.
template <class NameOf>
void check_numbers(const GraphView& graph, const NameOf& name_of) {
  std::int64_t bytes = 0, cost = 0;
  for (NodeId v = 0; v < graph.node_count; ++v) {
    const std::int64_t size = graph.size[v], scratch = std::max<std::int64_t>(graph.scratch[v], 0);
    if (size < 0) throw InputError(fmt::format("node '{}' has the negative size {}", name_of(v), size));
    if (graph.cost[v] < 0)
      throw InputError(fmt::format("node '{}' has the negative cost {}", name_of(v), graph.cost[v]));
    if (size > kSumLimit - bytes || scratch > kSumLimit - bytes - size) {
      throw InputError(
          fmt::format("the sizes up to node '{}' add up to more than 2^62 bytes; are they in bytes?", name_of(v)));
    }
    if (graph.cost[v] > kSumLimit - cost) {
      throw InputError(
          fmt::format("the costs up to node '{}' add up to more than 2^62; use a larger unit", name_of(v)));
    }
    bytes += size + scratch;
    cost += graph.cost[v];
  }
}

template <class NameOf>
void check_scratch(const GraphView& graph, const NameOf& name_of) {
  for (NodeId v = 0; v < graph.node_count; ++v) {
    if (graph.scratch[v] >= 0) continue;
    std::int64_t takeable = 0;
    for (std::int32_t e = graph.input_begin[v]; e < graph.input_begin[v + 1]; ++e) {
      const NodeId u = graph.inputs[e];
      if (graph.reader_begin[u + 1] - graph.reader_begin[u] == 1 && graph.keep[u] == 0) takeable += graph.size[u];
    }
    const std::int64_t least = -std::min(graph.size[v], takeable);
    if (graph.scratch[v] < least) {
      throw InputError(fmt::format(
          "node '{}' has scratch {}, but may take over at most {} bytes of its inputs; the least legal scratch is {}",
          name_of(v), graph.scratch[v], -least, least));
    }
  }
}

/// The nodes of one cycle, in the direction of the edges. Some node misses inputs, and whoever does has such an input.
std::vector<NodeId> find_cycle(const std::vector<Node>& nodes, const std::vector<std::int32_t>& missing) {
  std::vector<std::uint8_t> seen(nodes.size(), 0);
  NodeId v = 0;
  while (missing[v] == 0) ++v;
  std::vector<NodeId> path;
  while (!seen[v]) {
    seen[v] = 1;
    path.push_back(v);
    v = *std::find_if(nodes[v].inputs.begin(), nodes[v].inputs.end(), [&](NodeId u) { return missing[u] > 0; });
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
    for (const NodeId u : nodes[v].inputs) {
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
    for (const NodeId u : nodes[v].inputs) {
      if (u > v) return false;
    }
  }
  return true;
}

void check_inplace(const std::vector<Node>& nodes) {
  for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
    const Node& node = nodes[v];
    if (node.inplace != kNoNode &&
        std::find(node.inputs.begin(), node.inputs.end(), node.inplace) == node.inputs.end()) {
      throw InputError(fmt::format("node {} is in place of node {}, which is not one of its inputs", quoted(nodes, v),
                                   node.inplace));
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
    std::vector<Shape> shapes;
    for (std::size_t i = 0; i < op.args.size(); ++i) shapes.push_back(arg_shape(v, op, i));
    check_op(op, shapes);
    check_types(op);
    const std::int64_t bytes = element_bytes(op.type) * element_count(op.shape);
    if (op.writes < 0) {
      if (nodes_[v].size != bytes) {
        throw InputError(fmt::format("its shape needs {} bytes, but its size is {}", bytes, nodes_[v].size));
      }
      return;
    }
    const Resident& target = resident(op.writes);
    if (target.bytes() != bytes || target.type != op.type) {
      throw InputError(fmt::format("it writes resident '{}', which is no {} tensor of {} bytes", target.name,
                                   to_string(op.type), bytes));
    }
    if (nodes_[v].size != 0) throw InputError("it writes a resident, so its size must be 0");
    if (writer_[op.writes] != kNoNode) {
      throw InputError(
          fmt::format("it writes resident '{}', as does node {}", target.name, quoted(nodes_, writer_[op.writes])));
    }
    writer_[op.writes] = v;
  }

  /// Of a checked op: every tensor is stored as its place wants it.
  void check_types(const Op& op) const {
    // Some outputs are f32 in any graph; the storage of the others shows in the first argument.
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
    return arg.kind == Operand::Kind::resident ? resident(arg.index).type : nodes_[arg.index].op->type;
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
    if (integers) throw InputError(fmt::format("argument {} must be a resident of type i32", i));
    const auto& inputs = nodes_[v].inputs;
    if (std::find(inputs.begin(), inputs.end(), arg.index) == inputs.end()) {
      throw InputError(fmt::format("argument {} is node {}, which is not one of its inputs", i, arg.index));
    }
    if (!nodes_[arg.index].op) {
      throw InputError(
          fmt::format("argument {} is node {}, which has no op and so no shape", i, quoted(nodes_, arg.index)));
    }
    return nodes_[arg.index].op->shape;
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

void drop_repeated_inputs(std::vector<Node>& nodes) {
  std::vector<NodeId> last_reader(nodes.size(), kNoNode);
  for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
    std::erase_if(nodes[v].inputs, [&](NodeId u) { return std::exchange(last_reader[u], v) == v; });
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

Node node_of(const Graph& graph, NodeId v) {
  Node node;
  node.name = graph.name(v);
  node.size = graph.size(v);
  node.cost = graph.cost(v);
  node.scratch = graph.scratch(v);
  node.keep = graph.keep(v);
  node.backward = graph.backward(v);
  node.forward = graph.forward(v);
  node.inplace = graph.inplace(v);
  node.inputs.assign(graph.inputs(v).begin(), graph.inputs(v).end());
  if (graph.op(v) != nullptr) node.op = *graph.op(v);
  return node;
}

Graph::Graph() : Graph(Data{std::make_shared<const Structure>(), {}, {}, {}}) {}
Graph::Graph(Data data) : data_(std::make_shared<const Data>(std::move(data))), view_(data_->view()) {}

const std::string& Graph::name() const { return data_->structure->name; }
const std::string& Graph::name(NodeId v) const { return data_->structure->names[v]; }
bool Graph::backward(NodeId v) const { return data_->structure->backward[v] != 0; }
NodeId Graph::forward(NodeId v) const { return data_->structure->forward[v]; }
NodeId Graph::inplace(NodeId v) const { return data_->structure->inplace[v]; }
const Op* Graph::op(NodeId v) const {
  const std::optional<Op>& op = data_->structure->ops[v];
  return op && data_->executable ? &*op : nullptr;
}
std::span<const Resident> Graph::residents() const {
  return data_->executable ? std::span<const Resident>(data_->structure->residents) : std::span<const Resident>();
}
std::int64_t Graph::resident_bytes() const { return data_->structure->resident_bytes; }
std::span<const NodeId> Graph::input_order() const { return data_->structure->order; }
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

Graph Graph::with_costs(std::vector<std::int64_t> cost) const {
  return with_numbers([&](Data& data) { data.cost = std::move(cost); });
}

Graph align_sizes(const Graph& graph, std::int64_t alignment) {
  if (alignment < 1 || alignment > (std::int64_t{1} << 30)) {
    throw InputError(fmt::format("alignment {} is not between 1 and 2^30 bytes", alignment));
  }
  return graph.with_numbers([&](Graph::Data& data) {
    data.executable = false;
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      data.size[v] = align_up(graph.size(v), alignment);
      // Where storage is taken over, what the output adds to it is rounded, so that the result stays legal.
      data.scratch[v] = graph.scratch(v) >= 0 ? align_up(graph.scratch(v), alignment)
                                              : align_up(graph.size(v) + graph.scratch(v), alignment) - data.size[v];
    }
  });
}

std::string Graph::fingerprint() const {
  std::uint64_t h = mix(0, static_cast<std::uint64_t>(node_count()));
  for (NodeId v = 0; v < node_count(); ++v) {
    h = mix(h, static_cast<std::uint64_t>(size(v)));
    h = mix(h, static_cast<std::uint64_t>(scratch(v)));
    h = mix(h, static_cast<std::uint64_t>(inplace(v)) * 2 + (keep(v) ? 1 : 0));
    std::vector<NodeId> sorted(inputs(v).begin(), inputs(v).end());
    std::sort(sorted.begin(), sorted.end());
    for (const NodeId u : sorted) h = mix(h, static_cast<std::uint64_t>(u));
    h = mix(h, ~std::uint64_t{0});
  }
  return fmt::format("{:016x}", h);
}

GraphBuilder::GraphBuilder(const Graph& graph) : name_(graph.name()) {
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

void GraphBuilder::add_input(NodeId node, NodeId input) { nodes_.at(node).inputs.push_back(input); }
Node& GraphBuilder::node(NodeId v) { return nodes_.at(v); }
NodeId GraphBuilder::node_count() const { return static_cast<NodeId>(nodes_.size()); }

std::int32_t GraphBuilder::add_resident(Resident resident) {
  residents_.push_back(std::move(resident));
  return static_cast<std::int32_t>(residents_.size()) - 1;
}

const Resident& GraphBuilder::resident(std::int32_t index) const { return residents_.at(index); }
Resident& GraphBuilder::resident(std::int32_t index) { return residents_.at(index); }
void GraphBuilder::add_resident_bytes(std::int64_t bytes) {
  // What overflows is out of range too: build() says so.
  if (__builtin_add_overflow(extra_resident_bytes_, bytes, &extra_resident_bytes_)) extra_resident_bytes_ = -1;
}
void GraphBuilder::set_name(std::string name) { name_ = std::move(name); }
void GraphBuilder::set_order(std::vector<NodeId> order) { order_ = std::move(order); }

namespace {

/// Kahn's algorithm, the smallest ready node first. Throws on a cycle.
std::vector<NodeId> kahn(const std::vector<Node>& nodes, const std::vector<std::int32_t>& reader_begin,
                         const std::vector<NodeId>& readers) {
  std::vector<std::int32_t> missing(nodes.size());
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
    missing[v] = static_cast<std::int32_t>(nodes[v].inputs.size());
    if (missing[v] == 0) ready.push(v);
  }
  std::vector<NodeId> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    const NodeId v = ready.top();
    ready.pop();
    order.push_back(v);
    for (std::int32_t e = reader_begin[v]; e < reader_begin[v + 1]; ++e) {
      if (--missing[readers[e]] == 0) ready.push(readers[e]);
    }
  }
  if (order.size() != nodes.size()) {
    throw InputError(fmt::format("the graph has a cycle: {}", list_cycle(nodes, find_cycle(nodes, missing))));
  }
  return order;
}

}  // namespace

Graph GraphBuilder::build() {
  std::vector<Node> nodes = std::exchange(nodes_, {});
  const auto n = static_cast<NodeId>(nodes.size());
  for (NodeId v = 0; v < n; ++v) {
    if (nodes[v].name.empty()) nodes[v].name = fmt::format("#{}", v);
  }
  check_names(nodes);
  check_inputs_exist(nodes);
  drop_repeated_inputs(nodes);

  const auto structure = std::make_shared<Graph::Structure>();
  Graph::Data data{structure, {}, {}, {}};
  for (const Node& node : nodes) {
    data.size.push_back(node.size);
    data.cost.push_back(node.cost);
    data.scratch.push_back(node.scratch);
    structure->keep.push_back(node.keep);
  }
  const auto name_of = [&](NodeId v) -> const std::string& { return nodes[v].name; };
  check_numbers(data.view(), name_of);
  std::size_t edges = 0;
  for (const Node& node : nodes) edges += node.inputs.size();
  if (edges > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw InputError("the graph has more than 2^31 - 1 edges");
  }

  structure->input_begin.assign(n + 1, 0);
  structure->reader_begin.assign(n + 1, 0);
  structure->inputs.reserve(edges);
  for (NodeId v = 0; v < n; ++v) {
    for (const NodeId u : nodes[v].inputs) {
      structure->inputs.push_back(u);
      ++structure->reader_begin[u + 1];
    }
    structure->input_begin[v + 1] = static_cast<std::int32_t>(structure->inputs.size());
  }
  std::partial_sum(structure->reader_begin.begin(), structure->reader_begin.end(), structure->reader_begin.begin());
  structure->readers.resize(edges);
  std::vector<std::int32_t> fill(structure->reader_begin.begin(), structure->reader_begin.end() - 1);
  for (NodeId v = 0; v < n; ++v) {
    for (const NodeId u : nodes[v].inputs) structure->readers[fill[u]++] = v;
  }

  // Kahn also finds the cycles, so it runs even where a given order makes it superfluous.
  const bool ids_topological = ids_are_topological(nodes);
  std::vector<NodeId> kahn_order;
  if (!ids_topological) kahn_order = kahn(nodes, structure->reader_begin, structure->readers);
  if (order_) {
    check_order(nodes, *order_);
    structure->order = std::move(*order_);
    structure->order_given = true;
  } else if (ids_topological) {
    structure->order.resize(n);
    std::iota(structure->order.begin(), structure->order.end(), 0);
  } else {
    structure->order = std::move(kahn_order);
  }
  order_.reset();

  check_inplace(nodes);
  check_scratch(data.view(), name_of);
  OpChecker(nodes, residents_).check_all();

  structure->resident_bytes = std::exchange(extra_resident_bytes_, 0);
  for (const Resident& resident : residents_) {
    if (structure->resident_bytes < 0 || resident.bytes() > kSumLimit - structure->resident_bytes) {
      throw InputError("the resident bytes add up to less than 0 or more than 2^62");
    }
    structure->resident_bytes += resident.bytes();
  }
  if (structure->resident_bytes < 0 || structure->resident_bytes > kSumLimit) {
    throw InputError(fmt::format("{} resident bytes are not between 0 and 2^62", structure->resident_bytes));
  }
  structure->residents = std::exchange(residents_, {});
  structure->name = std::exchange(name_, {});
  for (Node& node : nodes) {
    structure->names.push_back(std::move(node.name));
    structure->backward.push_back(node.backward);
    structure->forward.push_back(node.forward);
    structure->inplace.push_back(node.inplace);
    structure->ops.push_back(std::move(node.op));
  }

  return Graph(std::move(data));
}

Graph forward_part(const Graph& graph) {
  std::vector<NodeId> forward;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.backward(v)) continue;
    for (const NodeId u : graph.inputs(v)) {
      if (!graph.backward(u)) continue;
      throw InputError(
          fmt::format("node '{}' is not marked backward, but reads node '{}', which is", graph.name(v), graph.name(u)));
    }
    forward.push_back(v);
  }
  return induced_subgraph(graph, forward, {.name = graph.name().empty() ? "" : graph.name() + "_forward"}).graph;
}

}  // namespace cairn::core
