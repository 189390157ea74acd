#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "cairn/core/graph.h"

namespace cairn::models {

/// An integer option of a model (batch, layers, width, ...), given on the command line as --name value.
struct ModelOption {
  std::string_view name;
  std::int64_t default_value;
  std::int64_t minimum;
  std::string_view help;
};

/// Says what a node of a model's graph stands for:
/// - `layer`: a layer, whose op the runtime executes;
/// - `op`: one of the elementary operations of which layers and the optimizer's updates consist
///   (models::to_operations).
enum class Granularity : std::uint8_t { layer, op };

/// Returns the granularity named `name`. Throws InputError if there is none; the message suggests the nearest name.
Granularity granularity_from_string(std::string_view name);

/// Parameters of the optimizers sgd and adamw. The comments of core::OpKind give the formulas that use them.
struct UpdateOptions {
  double rate = 1e-3;  ///< initial value of the resident tensor `learning_rate`
  double beta1 = 0.9;  ///< beta1 of adamw, or the momentum of sgd
  double beta2 = 0.999;
  double eps = 1e-8;
  double decay = 0;  ///< weight decay
  double clip = 0;   ///< largest norm of all gradients together; 0: gradients are not clipped
};

/// Options for building a model: the values of the model's own options, and options that all models share.
struct BuildOptions {
  /// Values of options, by name. Options that are not in the map have their default value.
  std::map<std::string, std::int64_t, std::less<>> values;
  /// Whether the weights' gradients are kept in the arena. If so, with granularity `layer`, the gradients are outputs
  /// of kept nodes, and not resident tensors. With granularity `op`, the gradients are kept until the end, and not
  /// freed once the optimizer's update has read them.
  bool weight_grads_in_arena = false;
  /// The optimizer. With `sgd` and `adamw`, the graph updates the weights: each update is a node, and gradients are in
  /// the arena until their updates have run. What the optimizers `none`, `momentum` and `adam` do depends on the
  /// granularity. With granularity `layer`, the graph does not update weights, and only the bytes of the optimizer's
  /// state count as resident: 0 bytes, as many as the weights, or twice as many. With granularity `op`, the graph
  /// updates the weights by the chosen optimizer; `none` is plain gradient descent. If the text is empty, the optimizer
  /// is `adam` for granularity `layer`, and ModelInfo::optimizer for granularity `op`.
  std::string optimizer;
  UpdateOptions update = {};
  Granularity granularity = Granularity::layer;
  core::Roofline roofline;
};

/// A model whose graph is a training step: the forward pass, the loss, and the backward pass to the gradients of all
/// weights.
struct ModelInfo {
  std::string_view name;
  std::string_view summary;
  std::span<const ModelOption> options;
  core::Graph (*build)(const BuildOptions&);  ///< builds the graph with granularity layer
  std::string_view optimizer = "adam";        ///< the optimizer that the model's paper uses
  bool weight_decay = false;                  ///< whether the paper uses an L2 penalty on the weights
};

std::span<const ModelInfo> registry();
/// Returns the model named `name`. Throws InputError if there is none; the message suggests the nearest name.
const ModelInfo& find_model(std::string_view name);
/// Checks the options, then builds the graph. Throws InputError if a value is out of range, or if the model or an
/// option is unknown. For an unknown name, the message suggests the nearest known name.
core::Graph build_model(std::string_view name, const BuildOptions& options);

}  // namespace cairn::models
