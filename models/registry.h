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

/// What every model understands beside its own options.
struct BuildOptions {
  std::map<std::string, std::int64_t, std::less<>> values;  ///< option name -> value; others take their defaults
  bool weight_grads_in_arena = false;  ///< gradients are ordinary kept nodes instead of resident buffers
  /// Optimizer state that is counted as resident: `none`, `momentum` (1 x the weights), `adam` (2 x).
  std::string optimizer = "adam";
  core::Roofline roofline;
};

/// A training step: forward, loss, backward to every weight gradient.
struct ModelInfo {
  std::string_view name;
  std::string_view summary;
  std::span<const ModelOption> options;
  core::Graph (*build)(const BuildOptions&);
};

std::span<const ModelInfo> registry();
/// Throws InputError that suggests the nearest name.
const ModelInfo& find_model(std::string_view name);
/// Checks names and minima of the options (InputError suggests the nearest), then builds.
core::Graph build_model(std::string_view name, const BuildOptions& options);

}  // namespace cairn::models
