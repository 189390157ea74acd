#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "cairn/core/cost_unit.h"
#include "cairn/core/link.h"
#include "cairn/core/op.h"

namespace cairn::core {

using NodeId = std::int32_t;
inline constexpr NodeId kNoNode = -1;

/// Number of a value, which is one output of one node. Values are numbered in the order of their nodes, and the outputs
/// of a node have consecutive numbers. If every node has one output, value v is the output of node v.
using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;

/// Identifies an output of a node, in the GraphBuilder and in files. In files, `3` is the first output of node 3, and
/// `[3, 1]` is its second output.
struct OutputRef {
  NodeId node = kNoNode;
  std::int32_t output = 0;

  constexpr OutputRef() = default;
  constexpr OutputRef(NodeId v, std::int32_t k = 0) : node(v), output(k) {}
  constexpr bool operator==(const OutputRef&) const = default;
};

/// One output of a node that has several outputs.
struct Output {
  std::int64_t size = 0;  ///< bytes, >= 0
  bool keep = false;      ///< whether the output must be in memory after the last step
  /// The input whose storage this output takes over, if nothing reads that input later.
  OutputRef inplace;
  std::string name;  ///< may be empty; differs from the names of the node's other outputs
  /// Whether searches must leave the output on the device. Checks of schedules ignore this flag, so a schedule that no
  /// search made may still move the output to the host.
  bool stays = false;
};

/// Describes a node for the GraphBuilder. Memory is in bytes. Costs are in ns or any other unit.
struct Node {
  std::string name;
  std::int64_t size = 0;  ///< bytes of its one output, >= 0
  std::int64_t cost = 0;  ///< >= 0
  /// Bytes that the node needs in addition to inputs and outputs while it runs. The number can be negative if an output
  /// takes over the storage of an input, because that storage would otherwise count twice. GraphBuilder::build() says
  /// which numbers are legal.
  std::int64_t scratch = 0;
  bool keep = false;  ///< whether its output must be in memory after the last step
  bool backward = false;
  /// Whether the node must run exactly once, for example because of random state, a collective or a side effect.
  bool pinned = false;
  NodeId forward = kNoNode;  ///< the forward node that a backward node belongs to
  /// The input whose storage the node's output takes over, if nothing reads that input later.
  OutputRef inplace;
  /// The outputs that the node reads. Duplicates are dropped. An input of size 0 carries no data; its only effect is
  /// that this node runs after the node that computes the input.
  std::vector<OutputRef> inputs;
  /// The operation of the node. Without one, the node has only sizes and a cost, and the runtime fills its outputs with
  /// a hash of its inputs.
  std::optional<Op> op;
  /// The outputs of a node that has several outputs. In that case, build() ignores size, keep and inplace above. If
  /// `outputs` is empty, the node has one output, which size, keep and inplace describe. A node that produces nothing
  /// has one output of size 0.
  std::vector<Output> outputs;
};

/// Sets the output sizes of a node to the sizes that its op produces. They go into `size`, or into `outputs` if the op
/// has several outputs or `outputs` is not empty. The outputs' other fields stay unchanged. The node must have an op
/// and must not write a resident tensor.
void set_sizes(Node& node);

/// The graph's arrays as plain pointers, for code that runs on the host or on a device. A view is valid as long as its
/// Graph exists.
struct GraphView {
  NodeId node_count;
  ValueId value_count;
  /// Whether every node has one output. If so, the value that node v produces has the number v, and `inputs` equals
  /// `predecessors`.
  bool single_output;
  // Per node:
  const std::int64_t* cost;
  const std::int64_t* scratch;
  const std::int64_t* node_size;  ///< total size of each node's outputs
  const std::uint8_t* pinned;
  /// node_count + 1 offsets. The outputs of node v are the values value_begin[v] to value_begin[v + 1] - 1.
  const std::int32_t* value_begin;
  const std::int32_t* input_begin;  ///< node_count + 1 offsets into inputs
  const ValueId* inputs;
  const std::int32_t* predecessor_begin;  ///< node_count + 1 offsets into predecessors
  const NodeId* predecessors;
  const std::int32_t* successor_begin;  ///< node_count + 1 offsets into successors
  const NodeId* successors;
  // Per value:
  const std::int64_t* size;
  const std::uint8_t* keep;
  const NodeId* producer;
  const std::int32_t* reader_begin;  ///< value_count + 1 offsets into readers
  const NodeId* readers;
};
static_assert(std::is_trivially_copyable_v<GraphView>);

/// A validated, immutable, directed acyclic computation graph. Copies are cheap, because they share the data. Several
/// threads may read one graph at the same time. An edge is one input of one node.
class Graph {
 public:
  Graph();  ///< the empty graph

  const std::string& name() const;
  const CostUnit& cost_unit() const;
  /// Returns the host memory to which schedules may move values, if the caller has set one. Host memory describes a
  /// machine and not the graph, so neither the fingerprint nor graph files contain it.
  const std::optional<HostMemory>& host_memory() const;
  NodeId node_count() const { return view_.node_count; }
  std::int64_t edge_count() const { return view_.input_begin[view_.node_count]; }  ///< number of inputs of all nodes

  std::int64_t size(NodeId v) const { return view_.node_size[v]; }  ///< total bytes of v's outputs
  std::int64_t cost(NodeId v) const { return view_.cost[v]; }
  std::int64_t scratch(NodeId v) const { return view_.scratch[v]; }
  bool pinned(NodeId v) const { return view_.pinned[v] != 0; }
  bool has_pinned() const;

  // --- Neighbours of a node: nodes that must run before it (predecessors) or after it (successors).
  /// Returns the distinct nodes whose outputs v reads, in the order in which the inputs of v first refer to them.
  std::span<const NodeId> predecessors(NodeId v) const {
    return {view_.predecessors + view_.predecessor_begin[v], view_.predecessors + view_.predecessor_begin[v + 1]};
  }
  /// Returns the nodes that read an output of v, ascending.
  std::span<const NodeId> successors(NodeId v) const {
    return {view_.successors + view_.successor_begin[v], view_.successors + view_.successor_begin[v + 1]};
  }
  /// Returns whether at least one output of v must be in memory after the last step.
  bool keep(NodeId v) const {
    for (const ValueId x : outputs(v)) {
      if (view_.keep[x] != 0) return true;
    }
    return false;
  }
  /// Returns whether every schedule must contain v, because an output of v is kept or because nothing reads v.
  bool required(NodeId v) const { return successors(v).empty() || keep(v); }

  // --- Values, which take memory. If single_output(), value v is the output of node v.
  ValueId value_count() const { return view_.value_count; }
  bool single_output() const { return view_.single_output; }
  /// Returns the values that v produces; there is at least one.
  std::ranges::iota_view<ValueId, ValueId> outputs(NodeId v) const {
    return {view_.value_begin[v], view_.value_begin[v + 1]};
  }
  std::int32_t output_count(NodeId v) const { return view_.value_begin[v + 1] - view_.value_begin[v]; }
  ValueId value(OutputRef ref) const {
    return ref.node == kNoNode ? kNoValue : view_.value_begin[ref.node] + ref.output;
  }
  NodeId producer(ValueId x) const { return view_.producer[x]; }
  OutputRef output_ref(ValueId x) const {
    return x == kNoValue ? OutputRef() : OutputRef(producer(x), x - view_.value_begin[producer(x)]);
  }
  std::int64_t value_size(ValueId x) const { return view_.size[x]; }
  bool value_kept(ValueId x) const { return view_.keep[x] != 0; }
  bool value_stays(ValueId x) const;  ///< whether searches must leave x on the device (Output::stays)
  /// Returns the distinct values that v reads, in the order in which the GraphBuilder got them.
  std::span<const ValueId> inputs(NodeId v) const {
    return {view_.inputs + view_.input_begin[v], view_.inputs + view_.input_begin[v + 1]};
  }
  /// Returns the nodes that read x, ascending.
  std::span<const NodeId> readers(ValueId x) const {
    return {view_.readers + view_.reader_begin[x], view_.readers + view_.reader_begin[x + 1]};
  }
  ValueId inplace(ValueId x) const;                 ///< the value that x overwrites, or kNoValue
  const std::string& output_name(ValueId x) const;  ///< name of output x; may be empty
  std::string value_name(ValueId x) const;          ///< name of x in messages: `conv1`, or `conv1[1]`, `conv1[mean]`

  // --- Other properties of a node.
  const std::string& name(NodeId v) const;
  bool backward(NodeId v) const;
  NodeId forward(NodeId v) const;
  const Op* op(NodeId v) const;  ///< nullptr if the node has none

  std::span<const Resident> residents() const;
  /// Returns the bytes that stay in memory while a schedule runs, and that no schedule frees: those of residents() and
  /// those that GraphBuilder::add_resident_bytes() added.
  std::int64_t resident_bytes() const;

  /// Returns the baseline order. This is the order that the builder was given, if any. Otherwise, it is the order of
  /// node ids if this order is topological, else the order of Kahn's algorithm with the lowest ready id first.
  std::span<const NodeId> input_order() const;
  bool order_was_given() const;

  /// Returns a hash in 16 hex digits of everything on which the validity and the memory of a schedule depend: sizes,
  /// scratch, keep, inputs, in-place outputs, the outputs of each node, and pins. Names, costs, ops and the input order
  /// are not hashed, so a schedule stays usable after costs are measured again.
  std::string fingerprint() const;

  const GraphView& view() const { return view_; }

  /// Returns a copy of this graph with the given scratch, in bytes, one number per node. The copy shares all other data
  /// with this graph. O(nodes + edges), without an allocation per node. Throws the InputError of GraphBuilder::build()
  /// if a number is not legal.
  Graph with_scratch(std::vector<std::int64_t> scratch) const;
  /// Returns a copy of this graph with the given costs, one number per node, and with the cost unit `unit` if it is
  /// given. The copy shares all other data with this graph. O(nodes + edges). Throws InputError if a cost or the unit
  /// is not legal.
  Graph with_costs(std::vector<std::int64_t> cost, std::optional<CostUnit> unit = std::nullopt) const;
  /// Returns a copy of this graph with the given host memory. The copy shares all other data with this graph. O(nodes +
  /// edges).
  Graph with_host_memory(std::optional<HostMemory> host) const;

 private:
  friend class GraphBuilder;
  friend Graph align_sizes(const Graph& graph, std::int64_t alignment);
  struct Structure;
  struct Data;
  explicit Graph(Data data);
  template <class Change>
  Graph with_numbers(const Change& change) const;
  std::shared_ptr<const Data> data_;
  GraphView view_{};
};

/// Returns node v of `graph` as a Node, which can be added to a GraphBuilder.
Node node_of(const Graph& graph, NodeId v);

/// Collects nodes and builds a validated graph of them. A node can name inputs that are added later.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name = "");
  /// Creates a builder that contains everything in `graph`, for callers that want a changed copy. Nodes and residents
  /// keep their ids.
  explicit GraphBuilder(const Graph& graph);

  NodeId add(Node node);
  void add_input(NodeId node, OutputRef input);  ///< adds an input to a node that has been added
  /// Makes `node` run after `predecessor` without reading data from it. This is a control edge: an input of size 0. If
  /// `predecessor` has no output of size 0, one is added. Both nodes must have been added, with all their outputs.
  void add_control_input(NodeId node, NodeId predecessor);
  Node& node(NodeId v);
  NodeId node_count() const;

  std::int32_t add_resident(Resident resident);
  const Resident& resident(std::int32_t index) const;
  Resident& resident(std::int32_t index);
  /// Adds `bytes` to Graph::resident_bytes() without adding a Resident.
  void add_resident_bytes(std::int64_t bytes);

  void set_name(std::string name);
  void set_host_memory(std::optional<HostMemory> host);
  void set_cost_unit(CostUnit unit);  ///< throws the InputError of check_cost_unit()
  void set_order(std::vector<NodeId> order);

  /// Validates and returns the graph. The builder is empty afterwards, even after an exception. O(nodes + edges), and
  /// that many for each update of a resident. If ops update resident tensors, adds control edges and pins nodes such
  /// that every update runs after all nodes that read what it overwrites (order_updates()). Throws InputError, which
  /// names the nodes, on any of these:
  /// - an input that does not exist, a self-loop, or a cycle (the message lists one);
  /// - a name that two nodes share, or that two outputs of one node share (a node without a name gets the name
  ///   `#index`);
  /// - a negative size or cost, or a sum of sizes or of costs above 2^62;
  /// - scratch below max(-size(v), -S), where S is the total size of the inputs that only v reads and that are not
  ///   kept;
  /// - an `inplace` that is not an input of its node, or the same `inplace` for two outputs of a node;
  /// - an order that is not a permutation of the nodes or not topological;
  /// - an op whose arguments or sizes do not fit the node;
  /// - a node that reads a resident, but can only run after the node that updates it.
  Graph build();

 private:
  std::string name_;
  CostUnit cost_unit_;
  std::optional<HostMemory> host_memory_;
  std::vector<Node> nodes_;
  std::vector<Resident> residents_;
  std::int64_t extra_resident_bytes_ = 0;
  std::optional<std::vector<NodeId>> order_;
};

/// Returns `graph` with sizes and positive scratch rounded up to `alignment` bytes. The peak of a schedule in the
/// resulting graph is a lower bound on the arena bytes of every plan of the schedule with that alignment. Node ids stay
/// the same. The list of residents and the ops are left out, because ops do not fit the rounded sizes. All other data
/// is shared with `graph`.
Graph align_sizes(const Graph& graph, std::int64_t alignment);

/// Returns the forward part of a training graph, as inference computes it: the graph without its backward nodes. The
/// forward nodes keep their relative order and get new ids. The residents stay the same. An output that only backward
/// nodes read is freed as soon as it is computed. O(nodes + edges). Throws InputError if a node that is not backward
/// reads a backward node.
Graph forward_part(const Graph& graph);

/// Rounds `value` up to a multiple of `alignment` (>= 1).
constexpr std::int64_t align_up(std::int64_t value, std::int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace cairn::core
