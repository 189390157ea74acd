#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"
#include "cairn/models/registry.h"

namespace cairn::models {

/// A handle of a node's output or of a resident tensor. Cheap to copy.
struct Tensor {
  core::Operand operand;
  core::Shape shape;

  std::int64_t channels() const { return shape.back(); }
};

/// Options of ModelBuilder::project() for x of rows x k elements and a weight w of k x n elements.
struct ProjectOptions {
  std::optional<Tensor> bias = std::nullopt;  ///< a tensor of n elements
  bool transposed = false;                    ///< whether w is stored [n, k]
  double alpha = 1.0;
  /// Shape of the output, which must have rows * n elements. If this is empty, the output has the shape of x with n as
  /// the last extent.
  core::Shape shape = {};
};

struct BatchedOptions {
  bool trans_a = false, trans_b = false;
  double alpha = 1.0;
};

/// Writes the forward pass of a model as nodes of a core::GraphBuilder. For every op, the shape of the output is
/// inferred, and core::check_op checks the op and throws InputError. A node gets an output of 4 bytes per element, the
/// scratch that its kernel needs, and the cost that BuildOptions::roofline estimates. Nodes are in the order of the
/// calls. Names must be unique.
class ModelBuilder {
 public:
  ModelBuilder(std::string name, const BuildOptions& options);

  // Resident tensors.
  Tensor weight(const std::string& name, core::Shape shape, core::Resident::Init init, double scale = 1.0);
  Tensor data(const std::string& name, core::Shape shape);  ///< fp32, from the standard normal distribution
  /// Adds a tensor of int32 values in [0, bound), such as token ids or labels.
  Tensor indices(const std::string& name, core::Shape shape, std::int64_t bound);
  Tensor constant(const std::string& name, core::Shape shape, core::Resident::Init init);

  // Forward ops, with shapes as in core/op.h.
  /// Computes alpha * x w + bias for w [k, n]. Reads the elements of x as a matrix rows x k, whatever x's axes are.
  Tensor project(const std::string& name, const Tensor& x, const Tensor& w, const ProjectOptions& options = {});

  /// Computes alpha * op(a) op(b) over the last two axes. The other axes are batch axes and must be equal in a and b.
  Tensor batched_matmul(const std::string& name, const Tensor& a, const Tensor& b, const BatchedOptions& options = {});

  Tensor add(const std::string& name, const Tensor& a, const Tensor& b);
  Tensor scale(const std::string& name, const Tensor& x, double alpha);
  Tensor relu(const std::string& name, const Tensor& x);
  Tensor gelu(const std::string& name, const Tensor& x);
  Tensor conv2d(const std::string& name, const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
                std::int64_t stride, std::int64_t pad);
  /// Adds two nodes: `name`.stats computes the statistics, and `name` the result. The shape of params is [2, C].
  Tensor batchnorm(const std::string& name, const Tensor& x, const Tensor& params);
  /// Adds two nodes: `name`.stats computes the statistics, and `name` the result. The shape of params is [2, C].
  Tensor layernorm(const std::string& name, const Tensor& x, const Tensor& params);
  Tensor maxpool(const std::string& name, const Tensor& x, std::int64_t kernel, std::int64_t stride, std::int64_t pad);
  Tensor mean_pool(const std::string& name, const Tensor& x);
  Tensor upsample(const std::string& name, const Tensor& x);
  Tensor concat(const std::string& name, const Tensor& a, const Tensor& b);
  Tensor permute(const std::string& name, const Tensor& x, std::vector<std::int64_t> perm);
  Tensor softmax(const std::string& name, const Tensor& x, bool causal);
  Tensor embedding(const std::string& name, const Tensor& ids, const Tensor& table,
                   const std::optional<Tensor>& positions);
  /// Drops each element with probability p. Every call uses its own random stream, so that the masks of different nodes
  /// differ. For p = 0, adds no node and returns x.
  Tensor dropout(const std::string& name, const Tensor& x, double p);

  // Losses of shape [1], from which backward() starts.
  Tensor cross_entropy(const std::string& name, const Tensor& logits, const Tensor& labels);
  Tensor mse(const std::string& name, const Tensor& y, const Tensor& target);

  // Functions for autodiff.
  /// Appends a node for `op`. If `forward` is given, the new node is a backward node, and `forward` is the forward node
  /// that it belongs to. If op.writes is a resident's index, the node's output takes no bytes.
  Tensor append(std::string name, core::Op op, core::NodeId forward = core::kNoNode);
  /// Marks the first output of v as kept.
  void keep(core::NodeId v) {
    core::Node& node = graph_.node(v);
    (node.outputs.empty() ? node.keep : node.outputs.front().keep) = true;
  }
  /// Returns whether the first output of v is kept.
  bool kept(core::NodeId v) {
    const core::Node& node = graph_.node(v);
    return node.outputs.empty() ? node.keep : node.outputs.front().keep;
  }
  void pin(core::NodeId v) { graph_.node(v).pinned = true; }
  /// Makes `node` run after `predecessor` without reading data from it (GraphBuilder::add_control_input).
  void add_control_input(core::NodeId node, core::NodeId predecessor) { graph_.add_control_input(node, predecessor); }
  std::int32_t add_resident(core::Resident resident);
  core::NodeId node_count() const { return graph_.node_count(); }
  std::int32_t resident_count() const { return resident_count_; }
  const std::string& node_name(core::NodeId v) { return graph_.node(v).name; }
  const core::Op& op(core::NodeId v) { return *graph_.node(v).op; }
  const core::Resident& resident(std::int32_t index) const { return graph_.resident(index); }
  core::Shape shape(const core::Operand& operand);
  const BuildOptions& options() const { return options_; }

  /// Validates and returns the graph; the builder is left empty.
  core::Graph build() { return graph_.build(); }

 private:
  Tensor resident_tensor(core::Resident resident);

  BuildOptions options_;
  core::GraphBuilder graph_;
  std::int32_t resident_count_ = 0;
  std::uint64_t dropout_streams_ = 0;
};

}  // namespace cairn::models
