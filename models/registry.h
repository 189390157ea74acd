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

/// Kind of the nodes in a model's graph. They are layers, whose ops the runtime executes, or the elementary operations
/// that layers consist of, including the optimizer's (models::to_operations).
enum class Granularity : std::uint8_t { layer, op };

/// Returns the granularity of that name. Throws InputError that suggests the nearest name.
Granularity granularity_from_string(std::string_view name);

/// Options that every model has, beside its own.
struct BuildOptions {
  std::map<std::string, std::int64_t, std::less<>> values;  ///< option name -> value; missing ones take their defaults
  /// For granularity layer, makes gradients ordinary kept nodes instead of resident buffers. For granularity op, keeps
  /// gradients instead of freeing them once the update has read them.
  bool weight_grads_in_arena = false;
  /// The optimizer whose state is counted as resident: `none`, `momentum` (1 x the weights) or `adam` (2 x). For
  /// granularity op it also sets the update; `none` is then plain gradient descent. Empty: adam; for granularity op,
  /// the model's own (ModelInfo).
  std::string optimizer;
  Granularity granularity = Granularity::layer;
  core::Roofline roofline;
};

/// A model whose graph is a training step: forward, loss, backward to every weight gradient.
struct ModelInfo {
  std::string_view name;
  std::string_view summary;
  std::span<const ModelOption> options;
  core::Graph (*build)(const BuildOptions&);  ///< builds it in layers
  std::string_view optimizer = "adam";        ///< the optimizer that the model's paper uses
  bool weight_decay = false;                  ///< whether the paper uses an L2 penalty on the weights
};

std::span<const ModelInfo> registry();
/// Returns the model of that name. Throws InputError that suggests the nearest name.
const ModelInfo& find_model(std::string_view name);
/// Checks names and minima of the options (InputError suggests the nearest), then builds.
core::Graph build_model(std::string_view name, const BuildOptions& options);

}  // namespace cairn::models
