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

  /// The operations that follow are those of this layer, which is backward if it belongs to a `forward` operation.
  void begin(std::string_view layer, core::NodeId forward);

  /// One operation with an output of its own. `flops` below 0: one an element of the largest tensor it touches.
  OperationValue compute(std::string_view what, core::Shape shape, Values inputs, std::int64_t flops = -1,
                         std::int64_t element_bytes = 4);
  /// The same with the shape of the first input.
  OperationValue elementwise(std::string_view what, Values inputs, std::int64_t flops_an_element = 1);

  /// A resident tensor of that shape, of which `elements` are read; below 0: all.
  OperationValue read(core::Shape shape, std::int64_t elements = -1);
  OperationValue descriptor(std::string_view what, Values inputs);
  /// `x` with another shape or order of axes: the elements of x, and a descriptor that reads x and `how`.
  OperationValue view(std::string_view what, const OperationValue& x, core::Shape shape,
                      const OperationValue& how = {});
  /// Fills resident storage with x, once `after` is done: kept, size 0.
  void assign(const OperationValue& x, const OperationValue& after = {});

  void keep(const OperationValue& x) { nodes_[x.nodes.front()].keep = true; }
  /// The nodes that a kept one needs, in their order.
  core::GraphBuilder finish();

 private:
  core::NodeId append(std::string_view what, Values inputs, std::int64_t size, std::int64_t cost);

  std::string name_;
  core::Roofline roofline_;
  std::vector<core::Node> nodes_;
  std::vector<std::int64_t>
      bytes_behind_;  ///< of each node: what reading it moves; of a resident's descriptor, all of it
  std::string layer_;
  core::NodeId forward_ = core::kNoNode;
  std::map<std::string, int, std::less<>> used_;  ///< names in this layer
};

}  // namespace cairn::models
