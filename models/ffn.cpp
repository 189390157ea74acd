#include <fmt/format.h>

#include <array>

#include "cairn/models/autodiff.h"
#include "cairn/models/internal/families.h"
#include "cairn/models/internal/layers.h"
#include "cairn/models/internal/options.h"

namespace cairn::models {
namespace {

constexpr std::array<ModelOption, 5> kFfnOptions{{
    {"batch", 256, 1, "samples in a step"},
    {"layers", 8, 1, "linear layers, the output layer included"},
    {"width", 1024, 1, "units of a hidden layer"},
    {"inputs", 1024, 1, "features of a sample"},
    {"outputs", 1024, 1, "targets of a sample"},
}};

/// Builds a multilayer perceptron with ReLU. The loss is the mean squared error.
core::Graph build_ffn(const BuildOptions& options) {
  const OptionValues value("ffn", kFfnOptions, options);
  ModelBuilder model("ffn", options);
  Tensor x = model.data("inputs", {value["batch"], value["inputs"]});
  const Tensor target = model.data("targets", {value["batch"], value["outputs"]});
  const std::int64_t layers = value["layers"];
  for (std::int64_t i = 0; i + 1 < layers; ++i) {
    x = linear(model, fmt::format("layer{}", i), x, value["width"]);
    x = model.relu(fmt::format("layer{}.relu", i), x);
  }
  x = linear(model, fmt::format("layer{}", layers - 1), x, value["outputs"]);
  return training_step(model, model.mse("loss", x, target));
}

constexpr std::array<ModelInfo, 1> kFfnModels{{
    {"ffn", "ReLU multilayer perceptron, mean squared error", kFfnOptions, build_ffn, "none"},
}};

}  // namespace

std::span<const ModelInfo> ffn_models() { return kFfnModels; }

}  // namespace cairn::models
