#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::models {

/// What an operation reads of a tensor: the node that holds its elements, and behind it the descriptors that say how to
/// look at them. Of a resident tensor there is only a descriptor.
struct OperationValue {
  std::vector<core::NodeId> nodes;
  core::Shape shape;
  bool resident = false;
};

/// Appends elementary operations as nodes without an op. A descriptor - a shape, the axes of a sum, a view of a tensor
/// - takes kDescriptorBytes and costs nothing; a view leaves the elements where they are, so whoever reads it also
/// reads these.
class OperationWriter {
 public:
  using Values = std::initializer_list<OperationValue>;
  static constexpr std::int64_t kDescriptorBytes = 64;

  OperationWriter(std::string name, const core::Roofline& roofline);

  /// The forward operations of a layer, from the first to the one that makes its output.
  struct Range {
    core::NodeId first = core::kNoNode, last = core::kNoNode;
  };

  /// The operations that follow are forward ones of this layer.
  void begin(std::string_view layer) { begin(layer, {}); }
  /// They are backward ones, and belong to the operations of a forward layer.
  void begin(std::string_view layer, Range forward);

  core::NodeId node_count() const { return static_cast<core::NodeId>(nodes_.size()); }

  /// One operation with an output of its own. `flops` below 0: one an element of the largest tensor it touches.
  OperationValue compute(std::string_view what, core::Shape shape, Values inputs, std::int64_t flops = -1,
                         std::int64_t element_bytes = 4);
  /// The same with the shape of the first input.
  OperationValue elementwise(std::string_view what, Values inputs);

  /// A resident tensor of that shape, of which `elements` are read; below 0: all.
  OperationValue read(core::Shape shape, std::int64_t elements = -1);
  OperationValue descriptor(std::string_view what, Values inputs);
  /// `x` with another shape or order of axes: the elements of x, and a descriptor that reads x and `how`.
  OperationValue view(std::string_view what, const OperationValue& x, core::Shape shape,
                      const OperationValue& how = {});
  /// Fills resident storage with x, once `after` is done: kept, size 0.
  void assign(const OperationValue& x, const OperationValue& after = {});

  void keep(const OperationValue& x) { nodes_[x.nodes.front()].keep = true; }
  /// The nodes that a kept one needs, in their order. A backward one is marked with the forward operation behind which
  /// it can run when that part of the forward pass has run again: of its layer's, the last that comes no later than any
  /// last reader of what it reads of the forward pass.
  core::GraphBuilder finish();
  const core::Roofline& roofline() const { return roofline_; }

 private:
  core::NodeId append(std::string_view what, Values inputs, std::int64_t size, std::int64_t cost);
  void mark(const std::vector<bool>& needed);

  std::string name_;
  core::Roofline roofline_;
  std::vector<core::Node> nodes_;
  std::vector<std::int64_t>
      bytes_behind_;  ///< of each node: what reading it moves; of a resident's descriptor, all of it
  std::string layer_;
  Range forward_;
  std::vector<Range> forward_of_;                 ///< of each node; empty: it is forward itself
  std::map<std::string, int, std::less<>> used_;  ///< names in this layer
};

}  // namespace cairn::models
