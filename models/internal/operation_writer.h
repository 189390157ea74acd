#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::models {

/// The nodes that an operation reads in order to read one tensor. The first of `nodes` holds the tensor's elements. All
/// further nodes are descriptors, which say how the elements are arranged. A resident tensor has only a descriptor,
/// because its elements are not in a node.
struct OperationValue {
  std::vector<core::NodeId> nodes;
  core::Shape shape;
  bool resident = false;
};

/// Appends elementary operations, such as the addition of two tensors, as nodes without a core::Op. A descriptor is a
/// small node that stands for a shape, for the axes of a sum, or for a view of a tensor. It takes kDescriptorBytes
/// bytes and has cost 0. A view does not copy elements, so the readers of a view also read the node that holds the
/// elements.
class OperationWriter {
 public:
  using Values = std::initializer_list<OperationValue>;
  static constexpr std::int64_t kDescriptorBytes = 64;

  OperationWriter(std::string name, const core::Roofline& roofline);

  /// The forward operations of a layer, from the first to the one that produces the layer's output.
  struct Range {
    core::NodeId first = core::kNoNode, last = core::kNoNode;
  };

  /// Starts a forward layer. The following operations belong to it.
  void begin(std::string_view layer) { begin(layer, {}); }
  /// Starts a backward layer. The following operations are backward nodes that belong to the forward layer `forward`.
  void begin(std::string_view layer, Range forward);

  core::NodeId node_count() const { return static_cast<core::NodeId>(nodes_.size()); }

  /// Adds one operation that produces a new tensor. If `flops` is negative, the operation is assumed to take one
  /// floating-point operation for each element of the largest tensor that it reads or writes.
  OperationValue compute(std::string_view what, core::Shape shape, Values inputs, std::int64_t flops = -1,
                         std::int64_t element_bytes = 4);
  /// Adds an operation whose output has the shape of its first input.
  OperationValue elementwise(std::string_view what, Values inputs);

  /// Adds a descriptor through which operations read a resident tensor. `elements` is the number of elements that an
  /// operation reads; a negative number means all elements.
  OperationValue read(core::Shape shape, std::int64_t elements = -1);
  OperationValue descriptor(std::string_view what, Values inputs);
  /// Returns `x` with another shape or order of axes. The elements of x stay where they are. The view is a new
  /// descriptor, which reads x and `how`. `how` describes the new arrangement; it can be the descriptor of a shape, or
  /// empty.
  OperationValue view(std::string_view what, const OperationValue& x, core::Shape shape,
                      const OperationValue& how = {});
  /// Adds an operation that copies x into resident storage. It runs after the operation that produces `after`. Its node
  /// is kept and has size 0.
  void assign(const OperationValue& x, const OperationValue& after = {});

  void keep(const OperationValue& x) { nodes_[x.nodes.front()].keep = true; }
  /// Returns a graph of the kept nodes and of all nodes that they depend on, in the order in which they were added.
  /// Also sets Node::forward of each backward node b to an operation of b's forward layer. A solver that recomputes the
  /// forward pass up to this operation can run b right after it, because no value that b reads has been freed by then.
  /// To find the operation, take the last forward reader of each value that b reads. Let r be the first of these
  /// readers to run. Node::forward is the last operation of b's forward layer that runs no later than r. If this
  /// operation is a descriptor, the next operation that is not a descriptor is taken.
  core::GraphBuilder finish();
  const core::Roofline& roofline() const { return roofline_; }

 private:
  core::NodeId append(std::string_view what, Values inputs, std::int64_t size, std::int64_t cost);
  void mark(const std::vector<bool>& needed);

  std::string name_;
  core::Roofline roofline_;
  std::vector<core::Node> nodes_;
  /// For each node, the number of bytes that an operation reads if it reads the node. For most nodes, this is the
  /// node's size. But a small node (descriptor) stands for each resident tensor, such as a weight; its entry is the
  /// size of the tensor.
  std::vector<std::int64_t> bytes_behind_;
  std::string layer_;
  Range forward_;
  std::vector<Range> forward_of_;                 ///< for each node, its forward layer; empty for forward nodes
  std::map<std::string, int, std::less<>> used_;  ///< number of operations of the current layer with each name
};

}  // namespace cairn::models
