#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::models {

/// A tensor as an operation reads it: the node that holds its elements, then the descriptors that say how to look at
/// them. A resident tensor has only a descriptor.
struct OperationValue {
  std::vector<core::NodeId> nodes;
  core::Shape shape;
  bool resident = false;
};

/// Appends elementary operations as nodes without an op. A descriptor - a shape, the axes of a sum, a view of a tensor
/// - takes kDescriptorBytes and costs nothing. A view leaves the elements where they are, so its readers also read the
/// node that holds them.
class OperationWriter {
 public:
  using Values = std::initializer_list<OperationValue>;
  static constexpr std::int64_t kDescriptorBytes = 64;

  OperationWriter(std::string name, const core::Roofline& roofline);

  /// The forward operations of a layer, from the first to the one that makes its output.
  struct Range {
    core::NodeId first = core::kNoNode, last = core::kNoNode;
  };

  /// Starts a forward layer, to which the following operations belong.
  void begin(std::string_view layer) { begin(layer, {}); }
  /// Starts a backward layer, whose operations belong to those of a forward layer.
  void begin(std::string_view layer, Range forward);

  core::NodeId node_count() const { return static_cast<core::NodeId>(nodes_.size()); }

  /// Adds one operation with an output of its own. `flops` below 0: one per element of the largest tensor it touches.
  OperationValue compute(std::string_view what, core::Shape shape, Values inputs, std::int64_t flops = -1,
                         std::int64_t element_bytes = 4);
  /// Adds an operation whose output has the shape of the first input.
  OperationValue elementwise(std::string_view what, Values inputs);

  /// Adds a resident tensor of that shape, of which `elements` are read; below 0: all.
  OperationValue read(core::Shape shape, std::int64_t elements = -1);
  OperationValue descriptor(std::string_view what, Values inputs);
  /// Returns `x` with another shape or order of axes: its elements, and a new descriptor that reads x and `how`.
  OperationValue view(std::string_view what, const OperationValue& x, core::Shape shape,
                      const OperationValue& how = {});
  /// Fills resident storage with x once `after` is done: a kept node of size 0.
  void assign(const OperationValue& x, const OperationValue& after = {});

  void keep(const OperationValue& x) { nodes_[x.nodes.front()].keep = true; }
  /// Returns the nodes that a kept one needs, in their order. A backward node is marked with the forward operation
  /// after which it can run once that part of the forward pass has run again: of its layer's operations, the last one
  /// that comes no later than any last reader of the forward values it reads.
  core::GraphBuilder finish();
  const core::Roofline& roofline() const { return roofline_; }

 private:
  core::NodeId append(std::string_view what, Values inputs, std::int64_t size, std::int64_t cost);
  void mark(const std::vector<bool>& needed);

  std::string name_;
  core::Roofline roofline_;
  std::vector<core::Node> nodes_;
  std::vector<std::int64_t>
      bytes_behind_;  ///< bytes moved by reading each node; for a resident's descriptor, all of them
  std::string layer_;
  Range forward_;
  std::vector<Range> forward_of_;                 ///< for each node, its forward layer; empty: it is forward itself
  std::map<std::string, int, std::less<>> used_;  ///< number of uses of a name in this layer
};

}  // namespace cairn::models
