#include "cairn/models/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"
#include "cairn/models/internal/families.h"
#include "cairn/models/support/operations.h"

namespace cairn::models {
namespace {

std::vector<ModelInfo> all_models() {
  std::vector<ModelInfo> models;
  for (const auto family :
       {ffn_models(), resnet_models(), unet_models(), transformer_models(), gpt2_models(), mlp_mixer_models()}) {
    models.insert(models.end(), family.begin(), family.end());
  }
  return models;
}

}  // namespace

std::span<const ModelInfo> registry() {
  static const std::vector<ModelInfo> models = all_models();
  return models;
}

const ModelInfo& find_model(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ModelInfo& model : registry()) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  throw core::InputError(
      fmt::format("unknown model '{}'; `cairn models` lists them{}", name, core::did_you_mean(name, names)));
}

Granularity granularity_from_string(std::string_view name) {
  static constexpr std::array<std::string_view, 2> kNames{"layer", "op"};
  const auto it = std::find(kNames.begin(), kNames.end(), name);
  if (it == kNames.end()) {
    throw core::InputError(
        fmt::format("unknown granularity '{}': use layer or op{}", name, core::did_you_mean(name, kNames)));
  }
  return static_cast<Granularity>(it - kNames.begin());
}

core::Graph build_model(std::string_view name, const BuildOptions& options) {
  const ModelInfo& model = find_model(name);
  if (options.granularity == Granularity::layer) return model.build(options);  // build() checks the options
  BuildOptions of_layers = options;
  if (of_layers.optimizer.empty()) of_layers.optimizer = model.optimizer;
  of_layers.weight_grads_in_arena = false;
  return to_operations(model.build(of_layers), {.optimizer = of_layers.optimizer,
                                                .weight_decay = model.weight_decay,
                                                .keep_gradients = options.weight_grads_in_arena,
                                                .roofline = options.roofline});
}

}  // namespace cairn::models
