#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::models {

/// An integer option of a model (batch, layers, width, ...), given on the command line as --name value.
struct ModelOption {
  std::string_view name;
  std::int64_t default_value;
  std::int64_t minimum;
  std::string_view help;
};

/// What the nodes of a model's graph are: layers, whose ops the runtime executes, or the elementary operations that
/// they consist of, with the optimizer's (models::to_operations).
enum class Granularity : std::uint8_t { layer, op };

/// Throws InputError that suggests the nearest name.
Granularity granularity_from_string(std::string_view name);

/// What every model understands beside its own options.
struct BuildOptions {
  std::map<std::string, std::int64_t, std::less<>> values;  ///< option name -> value; others take their defaults
  /// Gradients are ordinary kept nodes instead of resident buffers; of operations: instead of being freed when the
  /// update has read them.
  bool weight_grads_in_arena = false;
  /// Optimizer state that is counted as resident: `none`, `momentum` (1 x the weights), `adam` (2 x). Of operations
  /// also the update, `none` being plain gradient descent. Empty: adam; of operations, the model's own (ModelInfo).
  std::string optimizer;
  Granularity granularity = Granularity::layer;
  core::Roofline roofline;
};

/// A training step: forward, loss, backward to every weight gradient.
struct ModelInfo {
  std::string_view name;
  std::string_view summary;
  std::span<const ModelOption> options;
  core::Graph (*build)(const BuildOptions&);  ///< in layers
  std::string_view optimizer = "adam";        ///< that its paper trains it with
  bool weight_decay = false;                  ///< the same of an L2 penalty on the weights
};

std::span<const ModelInfo> registry();
/// Throws InputError that suggests the nearest name.
const ModelInfo& find_model(std::string_view name);
/// Checks names and minima of the options (InputError suggests the nearest), then builds.
core::Graph build_model(std::string_view name, const BuildOptions& options);

}  // namespace cairn::models
